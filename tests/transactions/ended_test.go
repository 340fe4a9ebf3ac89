package transactions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// ender ends the transaction of its own statement, after it was written.
type ender struct {
	ID      int64
	N       int
	Ends    string `gorm:"-"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

func (e *ender) AfterSave(tx *gorm.DB) error {
	if e.Ends == "" {
		return nil
	}
	return tx.Session(&gorm.Session{NewDB: true}).Exec(e.Ends).Error
}

// A commit that commits nothing is an error: the program, or a hook, has sent a ROLLBACK.
func TestCommit_ofWhatATextRolledBack(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]pgtest.Option{"prepared": {pgtest.PrepareStmt()}, "simple protocol": {pgtest.SimpleProtocol()}, "default": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&ender{}}, opts...)
			e := stand.Made(t, db, ender{})
			lost := func(what string, err error, stored bool) {
				t.Helper()
				if err == nil || !strings.Contains(err.Error(), "not committed") {
					t.Errorf("%s: %v", what, err)
				}
				row := stand.Row[ender](t, db, e.ID)
				stand.Equal(t, what+", stored", row.N > 0, stored)
				stand.Equal(t, what+", version", e.Version, row.Version)
			}
			end := func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Model(&e).Update("n", 1))
				return tx.Exec("ROLLBACK").Error
			}
			e.N, e.Ends = 1, "ROLLBACK"
			lost("Save", db.Save(&e).Error, false)
			lost("Update", db.Model(&e).Update("n", 1).Error, false)
			lost("slice", db.Save([]*ender{&e}).Error, false)
			e.Ends = ""
			lost("db.Transaction", db.Transaction(end), false)
			lost("gormlock.Transaction", gormlock.Transaction(db, end), false)
			tx := db.Begin()
			stand.Must(t, end(tx))
			lost("Commit", tx.Commit().Error, false)

			// Nothing is lost where the text commits, nothing was written, or another transaction was begun.
			e.Ends = "COMMIT"
			stand.Must(t, db.Model(&e).Update("n", 2).Error)
			e.Ends = ""
			stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return tx.Exec("ROLLBACK").Error }))
			stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, end(tx))
				stand.MustDo(t, tx.Exec("BEGIN"))
				return tx.Model(&e).Update("n", 3).Error
			}))
			stand.Equal(t, "n", stand.Row[ender](t, db, e.ID).N, 3)
			stand.Must(t, db.Save(&e).Error)
		})
	}
}
