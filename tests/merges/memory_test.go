package merges_test

import (
	"errors"
	"reflect"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// After a rollback, of whatever kind, mine is what it was, pointers and all, and base is never touched.
func TestSaveMerged_afterARollback(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&page{}}, func(t *testing.T, db *gorm.DB) {
		errBack := errors.New("back")
		for name, in := range map[string]func(do func(tx *gorm.DB) error) error{
			"a transaction": func(do func(tx *gorm.DB) error) error {
				return db.Transaction(func(tx *gorm.DB) error { return errors.Join(do(tx), errBack) })
			},
			"ours": func(do func(tx *gorm.DB) error) error {
				return gormlock.Transaction(db, func(tx *gorm.DB) error { return errors.Join(do(tx), errBack) })
			},
			"Begin": func(do func(tx *gorm.DB) error) error {
				tx := db.Begin()
				return errors.Join(do(tx), tx.Rollback().Error, errBack)
			},
			"a savepoint": func(do func(tx *gorm.DB) error) error {
				return db.Transaction(func(tx *gorm.DB) error {
					return tx.Transaction(func(tx *gorm.DB) error { return errors.Join(do(tx), errBack) })
				})
			},
		} {
			for what, change := range map[string]func(*page){
				"something": func(p *page) { p.Title = "mine" },
				"nothing":   func(*page) {},
			} {
				base, mine := opened(t, db)
				theirs := base
				stand.Must(t, db.Model(&theirs).Updates(map[string]any{"body": "theirs"}).Error)
				change(&mine)
				was, wasBase := mine, base
				if err := in(func(tx *gorm.DB) error { return gormlock.SaveMerged(tx, &mine, &base) }); err == nil || !errors.Is(err, errBack) || errors.Is(err, gormlock.ErrStale) {
					t.Fatalf("%s: %v", name, err)
				}
				mine.Seen = was.Seen
				if !reflect.DeepEqual(mine, was) || !reflect.DeepEqual(base, wasBase) {
					t.Errorf("%s of %s: mine is %+v, was %+v; base %+v", name, what, mine, was, base)
				}
				stand.Equal(t, name+" version", stand.Row[page](t, db, base.ID).Version, 2)
				// What was rolled back once is merged again.
				mine.Visits = 5
				stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
				mustBeRow(t, db, mine)
			}
		}
	})
}

// A hook that fails leaves nothing of the save, even if its error is dropped in a transaction.
func TestSaveMerged_hooksThatFail(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&page{}}, func(t *testing.T, db *gorm.DB) {
		for _, title := range []string{"fail before", "fail after"} {
			base, mine := opened(t, db)
			theirs := base
			stand.Must(t, db.Model(&theirs).Updates(map[string]any{"body": "theirs"}).Error)
			mine.Title = title
			was := mine
			if err := gormlock.SaveMerged(db, &mine, &base); !errors.Is(err, errHook) || !reflect.DeepEqual(mine, was) {
				t.Errorf("%s: %v, mine is %+v", title, err, mine)
			}
			err := db.Transaction(func(tx *gorm.DB) error {
				if err := gormlock.SaveMerged(tx, &mine, &base); !errors.Is(err, errHook) || !reflect.DeepEqual(mine, was) {
					t.Errorf("%s: %v, mine is %+v", title, err, mine)
				}
				return nil
			})
			stand.Equal(t, title+": the commit fails", errors.Is(err, errHook), title == "fail after")
			stand.Equal(t, title, stand.Row[page](t, db, base.ID).Title, "title")
			stand.Must(t, db.Session(&gorm.Session{SkipHooks: true}).Transaction(func(tx *gorm.DB) error { return gormlock.SaveMerged(tx, &mine, &base) }))
			mustBeRow(t, db, mine)
		}
	})
}

// A conflict leaves a transaction usable, but for one of ours, in which every stale write counts.
func TestSaveMerged_conflictInATransaction(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&page{}})
	base, mine := opened(t, db)
	theirs := base
	stand.Must(t, db.Model(&theirs).Update("title", "theirs").Error)
	mine.Title = "mine"
	swallow := func(tx *gorm.DB) error {
		mustConflict(t, gormlock.SaveMerged(tx, &mine, &base))
		return tx.Model(&page{}).Where("id = ?", base.ID).Update("visits", 1).Error
	}
	stand.Must(t, db.Transaction(swallow))
	stand.Equal(t, "visits", stand.Row[page](t, db, base.ID).Visits, 1)
	mustConflict(t, gormlock.Transaction(db, swallow))
}

// It works in each kind of session, is told of, and costs two round trips beside those of its transaction.
func TestSaveMerged_sessions(t *testing.T) {
	t.Parallel()
	var heard pgtest.Hearer
	proxy, dsn := pgtest.Tap(t, pgtest.SchemaDSN(t))
	plugin := gormlock.New(gormlock.WithObserver(&heard))
	t.Cleanup(func() { _ = plugin.Close() })
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.MaxConns(1), pgtest.Plugin(plugin))
	stand.Must(t, db.AutoMigrate(&page{}))
	count := func(theirs map[string]any, change func(*page), in func(do func(tx *gorm.DB) error) error) int {
		trips := 0
		for range 3 { // pgx prepares a statement when it sees it first
			base, mine := opened(t, db)
			if theirs != nil {
				other := base
				stand.Must(t, db.Model(&other).Updates(theirs).Error)
			}
			change(&mine)
			stand.Must(t, in(func(tx *gorm.DB) error {
				before := proxy.RoundTrips()
				err := gormlock.SaveMerged(tx, &mine, &base)
				trips = proxy.RoundTrips() - before
				return err
			}))
		}
		return trips
	}
	title := func(p *page) { p.Title = "mine" }
	stand.Equal(t, "in a transaction", count(map[string]any{"body": "b"}, title, func(do func(tx *gorm.DB) error) error { return db.Transaction(do) }), 2)
	stand.Equal(t, "changed on both sides", count(map[string]any{"title": "x"}, title, func(do func(tx *gorm.DB) error) error {
		return db.Transaction(func(tx *gorm.DB) error {
			mustConflict(t, do(tx))
			return nil
		})
	}), 2) // the second asks, and nothing is written
	stand.Equal(t, "json, of which the server knows when it is the same", count(nil, func(p *page) { p.Extra = text("[1]") }, func(do func(tx *gorm.DB) error) error { return db.Transaction(do) }), 3)
	stand.Equal(t, "nothing is mine", count(nil, func(*page) {}, func(do func(tx *gorm.DB) error) error { return db.Transaction(do) }), 1)
	stand.Equal(t, "in its own", count(nil, title, func(do func(tx *gorm.DB) error) error { return do(db) }), 4)
	stand.Equal(t, "without implicit ones", count(nil, title, func(do func(tx *gorm.DB) error) error {
		return do(db.Session(&gorm.Session{SkipDefaultTransaction: true}))
	}), 4)

	heard.Take()
	base, mine := opened(t, db)
	theirs := base
	stand.Must(t, db.Model(&theirs).Update("title", "theirs").Error)
	mine.Title = "mine"
	mustConflict(t, gormlock.SaveMerged(db, &mine, &base))
	told := false
	for _, e := range heard.Take() {
		told = told || e.Kind == observe.Stale && e.Table == "pages" && e.Mode == "save"
	}
	stand.Equal(t, "the observer is told", told, true)

	// A dry run sends nothing and changes nothing.
	was := mine
	before := proxy.RoundTrips()
	stand.Must(t, gormlock.SaveMerged(db.Session(&gorm.Session{DryRun: true}), &mine, &base))
	stand.Equal(t, "round trips of a dry run", proxy.RoundTrips()-before, 0)
	if !reflect.DeepEqual(mine, was) {
		t.Errorf("after a dry run mine is %+v", mine)
	}
}

// Without the plugin's eyes on transactions mine counts as not read after a transaction of the caller's, and stays read after
// one of its own.
func TestSaveMerged_withPlainTransactions(t *testing.T) {
	t.Parallel()
	plugin := gormlock.New(gormlock.PlainTransactions())
	t.Cleanup(func() { _ = plugin.Close() })
	db := pgtest.Open(t, pgtest.Plugin(plugin), pgtest.Schema())
	stand.Must(t, db.AutoMigrate(&page{}))
	base, mine := opened(t, db)
	mine.Title = "mine"
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	mustBeRow(t, db, mine)
	base = mine
	mine.Title = "again"
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return gormlock.SaveMerged(tx, &mine, &base) }))
	stand.MustBeUnread(t, db.Save(&mine).Error)
}
