package transactions_test

import (
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	// doubted has children of its own.
	doubted struct {
		ID      int64
		Amount  int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
		Lines   []doubtedLine
		Notes   []doubtedNote
	}
	doubtedLine struct {
		ID        int64
		DoubtedID int64
		Version   int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	// doubtedNote has no version.
	doubtedNote struct {
		ID        int64
		DoubtedID int64
	}
)

// The commit of a statement's own transaction may have been one where its answer does not come, whoever sends it: keys stay, versions count as
// not read, and the error says so.
func TestCommitInDoubt_ofAStatement(t *testing.T) {
	t.Parallel()
	locked := func(db *gorm.DB) *gorm.DB { return db.Scopes(gormlock.WithXactLock(gormlock.Key("doubt"))) }
	same := func(db *gorm.DB) *gorm.DB { return db }
	on := func(c *gorm.DB, write func(db *gorm.DB) error) error {
		var err error
		stand.Must(t, c.Connection(func(c *gorm.DB) error { err = write(c); return nil }))
		return err
	}
	direct := func(db *gorm.DB, write func(db *gorm.DB) error) error { return write(db) }
	skips := func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{SkipDefaultTransaction: true}) } // gormlock begins one then
	for setting, s := range map[string]struct {
		opts []gormlock.Option
		run  func(db *gorm.DB, write func(db *gorm.DB) error) error
		with func(db *gorm.DB) *gorm.DB
	}{
		"as it comes":                 {nil, direct, same},
		"as it comes, skipped":        {nil, direct, skips},
		"plain transactions":          {[]gormlock.Option{gormlock.PlainTransactions()}, direct, same},
		"plain transactions, locked":  {[]gormlock.Option{gormlock.PlainTransactions()}, direct, locked},
		"plain transactions, skipped": {[]gormlock.Option{gormlock.PlainTransactions()}, direct, skips},
		"db.Connection":               {nil, on, same},
		"db.Connection, locked":       {nil, on, locked},
	} {
		for what, act := range map[string]wiretap.Action{"the request is lost": wiretap.CutRequest, "the answer is lost": wiretap.CutAnswer} {
			t.Run(setting+"/"+what, func(t *testing.T) {
				t.Parallel()
				proxy, dsn := pgtest.Tap(t, pgtest.SchemaDSN(t))
				plugin := gormlock.New(s.opts...)
				t.Cleanup(func() { _ = plugin.Close() })
				db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(plugin))
				stand.Must(t, db.AutoMigrate(&doubted{}, &doubtedLine{}, &doubtedNote{}))
				lose := func(write func(tx *gorm.DB) error) {
					t.Helper()
					proxy.OnQuery(func(sql string) wiretap.Action {
						if strings.Contains(strings.ToUpper(sql), "COMMIT") {
							return act
						}
						return wiretap.Pass
					})
					err := s.run(db, func(db *gorm.DB) error { return write(s.with(db)) })
					proxy.OnQuery(nil)
					if err == nil || !strings.Contains(err.Error(), "gormlock: whether this transaction was committed is not known") || errors.Is(err, driver.ErrBadConn) || gormlock.IsRetryable(err) {
						t.Errorf("%v", err)
					}
				}
				kept := act == wiretap.CutAnswer // by the server
				a := doubted{Amount: 1, Lines: []doubtedLine{{}}, Notes: []doubtedNote{{}}}
				lose(func(tx *gorm.DB) error { return tx.Create(&a).Error })
				if a.ID == 0 || a.Lines[0].ID == 0 || a.Lines[0].DoubtedID != a.ID || a.Notes[0].DoubtedID != a.ID {
					t.Errorf("keys are lost: %+v", a)
				}
				if a.Version != -1 || a.Lines[0].Version != -1 {
					t.Errorf("they count as read: %+v", a)
				}
				a.Lines, a.Notes = nil, nil
				stand.MustBeUnread(t, db.Save(&a).Error)
				if !kept { // as the error says
					stand.MustDo(t, db.Create(&a))
				}
				var n int64
				if stand.Must(t, db.Model(&doubted{}).Count(&n).Error); n != 1 {
					t.Errorf("%d rows", n)
				}
				batch := []doubted{{Amount: 1}, {Amount: 2}}
				stand.Must(t, db.Create(&batch).Error)
				for name, write := range map[string]func(tx *gorm.DB, b *doubted) error{
					"Update":  func(tx *gorm.DB, b *doubted) error { return tx.Model(b).Update("amount", 2).Error },
					"Updates": func(tx *gorm.DB, b *doubted) error { b.Lines = []doubtedLine{{}}; return tx.Updates(b).Error },
					"Save":    func(tx *gorm.DB, b *doubted) error { b.Lines = []doubtedLine{{}}; return tx.Save(b).Error },
				} {
					b := doubted{Amount: 1, Lines: []doubtedLine{{}}}
					stand.Must(t, db.Create(&b).Error)
					if name == "Update" && strings.HasSuffix(setting, "skipped") {
						continue // it is one statement, and commits itself
					}
					lose(func(tx *gorm.DB) error { return write(tx, &b) })
					if b.Lines[0].DoubtedID != b.ID {
						t.Errorf("%s: the link is lost: %+v", name, b)
					}
					b.Lines = nil
					if err := db.Model(&b).Update("amount", 3).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
						t.Errorf("%s: updated again: %v, %+v", name, err, b)
					}
					stand.Must(t, db.First(&b, b.ID).Error)
					stand.Must(t, db.Model(&b).Update("amount", 4).Error)
				}
			})
		}
	}
}
