package locks_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	linkOwner struct {
		ID        int64
		Name      string
		MakerID   *int64
		Maker     *linkMaker
		Badge     *linkBadge  `gorm:"foreignKey:OwnerID"`
		Kids      []linkKid   `gorm:"foreignKey:OwnerID"`
		Toys      []linkToy   `gorm:"polymorphic:Owner"`
		Tags      []linkTag   `gorm:"many2many:link_owner_tags"`
		Marks     []*linkMark `gorm:"many2many:link_owner_marks"`
		UpdatedAt time.Time
		Version   int64 `gorm:"not null;default:1" gormlock:"version"`
		Fence     int64 `gormlock:"fence,key=link"`
	}
	linkMaker struct {
		ID   int64
		Name string
	}
	linkBadge struct {
		ID      int64
		OwnerID *int64
		Name    string
	}
	linkKid struct {
		ID      int64
		OwnerID *int64
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	linkToy struct {
		ID        int64
		OwnerID   *int64
		OwnerType *string
		Name      string
	}
	linkTag struct {
		ID   int64
		Name string
	}
	linkMark struct {
		ID   int64
		Name string
	}
)

var linkModels = []any{&linkMaker{}, &linkTag{}, &linkMark{}, &linkOwner{}, &linkBadge{}, &linkKid{}, &linkToy{}}

// linked is all that the tables of an owner hold.
func linked(t *testing.T, db *gorm.DB) string {
	t.Helper()
	var all []string
	for _, table := range []string{"link_owners", "link_makers", "link_badges", "link_kids", "link_toys", "link_tags", "link_marks", "link_owner_tags", "link_owner_marks"} {
		var rows []string
		stand.MustDo(t, db.Session(&gorm.Session{NewDB: true}).Raw("SELECT t::text FROM "+table+" AS t ORDER BY 1").Scan(&rows))
		all = append(all, table+strings.Join(rows, ""))
	}
	return strings.Join(all, "\n")
}

// link is a call of an association.
type link struct {
	of, name string
	reads    bool
	maps     bool // GORM creates a row of a map, before it runs scopes
	call     func(a *gorm.Association) error
}

func linksOf(relation string, one func() any, others ...func() any) []link {
	calls := []link{
		{relation, "Delete", false, false, func(a *gorm.Association) error { return a.Delete(one()) }},
		{relation, "Clear", false, false, func(a *gorm.Association) error { return a.Clear() }},
		{relation, "Find", true, false, func(a *gorm.Association) error { return a.Find(one()) }},
		{relation, "Count", true, false, func(a *gorm.Association) error { a.Count(); return a.Error }},
	}
	for i, given := range others {
		maps := i >= 2
		calls = append(calls,
			link{relation, fmt.Sprint("Append of ", i), false, maps, func(a *gorm.Association) error { return a.Append(given()) }},
			link{relation, fmt.Sprint("Replace by ", i), false, maps, func(a *gorm.Association) error { return a.Replace(given()) }})
	}
	return calls
}

func allLinks() (all []link) {
	row := func() any { return map[string]any{"name": "new"} }
	rows := func() any { return []map[string]any{{"name": "new"}, {"name": "newer"}} }
	all = append(all, linksOf("Maker", func() any { return &linkMaker{ID: 1} }, func() any { return &linkMaker{Name: "new"} })...)
	all = append(all, linksOf("Badge", func() any { return &linkBadge{ID: 1} }, func() any { return &linkBadge{Name: "new"} })...)
	all = append(all, linksOf("Kids", func() any { return &linkKid{ID: 1} }, func() any { return &linkKid{Name: "new"} }, func() any { return &[]linkKid{{Name: "new"}} }, row, rows)...)
	all = append(all, linksOf("Toys", func() any { return &linkToy{ID: 1} }, func() any { return &linkToy{Name: "new"} }, func() any { return &[]linkToy{{Name: "new"}} }, row, rows)...)
	all = append(all, linksOf("Tags", func() any { return &linkTag{ID: 1} }, func() any { return &linkTag{Name: "new"} }, func() any { return &[]linkTag{{Name: "new"}} }, row, rows)...)
	all = append(all, linksOf("Marks", func() any { return &linkMark{ID: 1} }, func() any { return &linkMark{Name: "new"} }, func() any { return &[]*linkMark{{Name: "new"}} }, row, rows)...)
	return all
}

// A call of an association whose lock, row lock, token or version is refused has stored nothing when its transaction has committed, whatever it
// was given and wherever that was asked for.
func TestAssociation_refused(t *testing.T) {
	t.Parallel()
	stand.Beside(t, map[string]*gormlock.Plugin{"": gormlock.New(), "PlainTransactions": gormlock.New(gormlock.PlainTransactions())}, func(t *testing.T, plugin *gormlock.Plugin) {
		db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(plugin))
		stand.MigrateFence(t, db)
		stand.Must(t, db.AutoMigrate(linkModels...))
		late, token := stand.Issue(t, db, "link"), stand.Issue(t, db, "link")
		owner := storeLinked(t, stand.With(db, token))
		key := pgtest.Key(t)
		rival := db.Begin()
		t.Cleanup(func() { rival.Rollback() })
		stand.Must(t, gormlock.AcquireXactLock(rival, []lockkey.Key{key}))
		before := linked(t, db)
		for what, c := range map[string]clause.Expression{
			"lock": gormlock.XactLock(key, gormlock.Try()), "row lock": gormlock.RowLock(gormlock.ForUpdate),
			"token": gormlock.Fence(late), "version": gormlock.ExpectVersion(99),
		} {
			for how, ask := range waysOf(c) {
				for _, l := range allLinks() {
					name := fmt.Sprintf("%s by %s, %s of %s", what, how, l.name, l.of)
					tx := stand.With(db.Begin(), token)
					read := owner
					err := l.call(ask(tx).Model(&read).Association(l.of))
					committed := tx.Commit().Error
					if after := linked(t, db); after != before {
						t.Errorf("%s: %v, and has stored\n%s", name, err, after)
						before = after
					}
					if l.reads {
						err = cmp.Or(err, map[bool]error{true: err, false: errInner}[what == "lock" || what == "version"])
					}
					if err == nil {
						t.Errorf("%s: no error, commit: %v", name, committed)
					}
					if what == "lock" && !l.maps && !errors.Is(err, gormlock.ErrNotAcquired) {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
		}
	})
}

// waysOf gives a clause to a statement in each of the ways.
func waysOf(c clause.Expression) map[string]func(tx *gorm.DB) *gorm.DB {
	return map[string]func(tx *gorm.DB) *gorm.DB{
		"scopes":  func(tx *gorm.DB) *gorm.DB { return tx.Scopes(func(q *gorm.DB) *gorm.DB { return q.Clauses(c) }) },
		"clauses": func(tx *gorm.DB) *gorm.DB { return tx.Clauses(c) },
	}
}

func storeLinked(t *testing.T, db *gorm.DB) linkOwner {
	t.Helper()
	id, of := int64(1), "link_owners"
	stand.MustDo(t, db.Create(&linkOwner{
		ID: 1, Maker: &linkMaker{ID: 1}, Badge: &linkBadge{ID: 1}, Kids: []linkKid{{ID: 1}}, Toys: []linkToy{{ID: 1, OwnerID: &id, OwnerType: &of}},
		Tags: []linkTag{{ID: 1}}, Marks: []*linkMark{{ID: 1}},
	}))
	for _, table := range []string{"link_makers", "link_badges", "link_kids", "link_toys", "link_tags", "link_marks"} {
		stand.MustDo(t, db.Exec("SELECT setval(pg_get_serial_sequence('"+table+"', 'id'), 100)"))
	}
	var owner linkOwner
	stand.MustDo(t, db.First(&owner, 1))
	return owner
}

// hookedLink calls something after it was created.
type hookedLink struct {
	ID   int64
	call func(tx *gorm.DB) error
}

func (h *hookedLink) AfterCreate(tx *gorm.DB) error { return h.call(tx) }

// A lock of a scope is taken by the last statement of an Append of maps. So it must be held before, or be given by a clause.
func TestAssociation_maps(t *testing.T) {
	t.Parallel()
	opened := func(opts ...gormlock.Option) func(t *testing.T) *gorm.DB {
		return func(t *testing.T) *gorm.DB {
			return pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(opts...)))
		}
	}
	stand.Beside(t, map[string]func(t *testing.T) *gorm.DB{
		"": opened(), "PlainTransactions": opened(gormlock.PlainTransactions()),
		"pretended": func(t *testing.T) *gorm.DB { return newPretended(t, &gorm.Config{}).db },
	}, func(t *testing.T, open func(t *testing.T) *gorm.DB) {
		db := open(t)
		stand.Must(t, db.AutoMigrate(&widgetMaker{}, &widget{}, &widgetPart{}, &hookedLink{}))
		stand.MustDo(t, db.Create(&widget{ID: 1}))
		id, key, other := int64(1000), pgtest.Key(t), lockkey.Pair(1, -2)
		both := func(tx *gorm.DB) *gorm.DB {
			return tx.Scopes(gormlock.WithXactLock(key), gormlock.WithXactLock(other, gormlock.Shared()))
		}
		add := func(tx *gorm.DB, part any) error { return tx.Model(&widget{ID: 1}).Association("Parts").Append(part) }
		part := func() map[string]any { id += 100; return map[string]any{"id": id, "name": "new"} }
		for name, c := range map[string]struct {
			run   func(tx *gorm.DB) error
			right bool
		}{
			"by scopes":          {func(tx *gorm.DB) error { return add(both(tx), part()) }, false},
			"by scopes, several": {func(tx *gorm.DB) error { return add(both(tx), []map[string]any{part(), part()}) }, false},
			"by clauses": {func(tx *gorm.DB) error {
				return add(tx.Clauses(gormlock.XactLock(key), gormlock.XactLock(other)), part())
			}, true},
			"by a clause and a scope": {func(tx *gorm.DB) error {
				return add(tx.Clauses(gormlock.XactLock(key)).Scopes(gormlock.WithXactLock(other)), part())
			}, false},
			"held": {func(tx *gorm.DB) error {
				return cmp.Or(gormlock.AcquireXactLock(tx, []lockkey.Key{key, other}), add(both(tx), part()))
			}, true},
			"held less": {func(tx *gorm.DB) error {
				return cmp.Or(gormlock.AcquireXactLock(tx, []lockkey.Key{key, other}, gormlock.Shared()), add(both(tx), part()))
			}, false},
			"held by a session of the scope": {func(tx *gorm.DB) error {
				tx = both(tx).Session(&gorm.Session{})
				return cmp.Or(tx.Find(&[]widget{}).Error, add(tx, part()))
			}, true},
			"of a struct, behind one of a map": {func(tx *gorm.DB) error { return cmp.Or(add(tx, part()), add(both(tx), &widgetPart{})) }, true},
			"of a struct, behind one of maps that failed": {func(tx *gorm.DB) error {
				p := part()
				return tx.Transaction(func(tx *gorm.DB) error {
					if err := tx.Transaction(func(tx *gorm.DB) error { return add(tx, []map[string]any{p, p}) }); err == nil {
						t.Error("the same part twice")
					}
					return add(both(tx), &widgetPart{})
				})
			}, true},
			"in a hook": {func(tx *gorm.DB) error {
				return tx.Create(&hookedLink{call: func(tx *gorm.DB) error { return add(both(tx), part()) }}).Error
			}, false},
			"in a hook that drops the error": {func(tx *gorm.DB) error {
				return tx.Create(&hookedLink{call: func(tx *gorm.DB) error { _ = add(both(tx), part()); return nil }}).Error
			}, false},
			"in a hook, by clauses": {func(tx *gorm.DB) error {
				return tx.Create(&hookedLink{call: func(tx *gorm.DB) error {
					return add(tx.Session(&gorm.Session{NewDB: true}).Clauses(gormlock.XactLock(key)), part())
				}}).Error
			}, true},
			"behind a savepoint": {func(tx *gorm.DB) error {
				if err := tx.Transaction(func(tx *gorm.DB) error { return add(both(tx), part()) }); err == nil {
					t.Error("behind a savepoint: no error")
				}
				return add(tx, &widgetPart{})
			}, true},
		} {
			var before, after int64
			stand.MustDo(t, db.Model(&widgetPart{}).Count(&before))
			tx := db.Begin()
			err := c.run(tx)
			committed := tx.Commit().Error
			stand.MustDo(t, db.Model(&widgetPart{}).Count(&after))
			if right := err == nil && committed == nil; right != c.right || c.right != (after > before) {
				t.Errorf("%s: %v, commit: %v, %d parts more", name, err, committed, after-before)
			}
		}
	})
}

// A lock that Append of a map does not get leaves the transaction as it was: GORM returns the error, also if other maps follow.
func TestAssociation_mapsWhoseLockIsHeld(t *testing.T) {
	t.Parallel()
	stand.Beside(t, map[string][]gormlock.Option{"": nil, "PlainTransactions": {gormlock.PlainTransactions()}}, func(t *testing.T, opts []gormlock.Option) {
		db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(opts...)))
		stand.Must(t, db.AutoMigrate(linkModels...))
		stand.Must(t, db.Session(&gorm.Session{}).Clauses(gormlock.IgnoreFence()).Create(&linkOwner{ID: 1, Name: "o"}).Error)
		key := pgtest.Key(t)
		n, _ := key.Int64()
		rival := stand.NewRowRival(t)
		lock := gormlock.XactLock(key, gormlock.Try())
		for name, maps := range map[string]func() any{
			"a map": func() any { return map[string]any{"name": "k"} },
			"maps":  func() any { return []map[string]any{{"name": "k"}, {"name": "k"}} },
		} {
			release := rival.Hold("SELECT pg_advisory_xact_lock($1)", n)
			stand.Must(t, db.Where("true").Delete(&linkKid{}).Error)
			add := func(tx *gorm.DB) error {
				return tx.Clauses(lock, gormlock.IgnoreFence()).Model(&linkOwner{ID: 1, Version: 1}).Association("Kids").Append(maps())
			}
			if err := db.Transaction(func(tx *gorm.DB) error {
				if err := add(tx); !errors.Is(err, gormlock.ErrNotAcquired) {
					t.Errorf("%s: %v", name, err)
				}
				if err := tx.Create(&linkTag{Name: name}).Error; err != nil {
					return err
				}
				release()
				return tx.Clauses(lock).Model(&linkTag{}).Where("name = ?", name).Update("name", name+", again").Error
			}); err != nil {
				t.Errorf("%s: the transaction behind it: %v", name, err)
			}
			var kids int64
			stand.Must(t, db.Model(&linkKid{}).Count(&kids).Error)
			stand.Equal(t, name+": stored", kids, 0)
		}
	})
}
