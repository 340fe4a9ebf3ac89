package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A write that somebody else has put into words compares nothing. It is an error, and rolled back.
func TestBypass(t *testing.T) {
	t.Parallel()
	type account struct {
		ID      int64
		Balance int64
		Note    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	plainly := func(db *gorm.DB, names ...string) {
		for _, name := range names {
			db.ClauseBuilders[name] = func(c clause.Clause, b clause.Builder) { c.Build(b) }
		}
	}
	ownWhere := func(tx *gorm.DB) *gorm.DB {
		tx.Statement.Clauses["WHERE"] = clause.Clause{Name: "WHERE", Expression: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "id = 1"}}}, Builder: func(c clause.Clause, b clause.Builder) {
			_, _ = b.WriteString("WHERE ")
			c.Expression.Build(b)
		}}
		return tx
	}
	for name, write := range map[string]func(db *gorm.DB, stale *account) error{
		"WHERE": func(db *gorm.DB, stale *account) error { plainly(db, "WHERE"); return db.Save(stale).Error },
		"SET": func(db *gorm.DB, stale *account) error {
			plainly(db, "SET")
			stale.Version++
			return db.Save(stale).Error
		},
		"SET and WHERE": func(db *gorm.DB, stale *account) error { plainly(db, "SET", "WHERE"); return db.Save(stale).Error },
		"a delete":      func(db *gorm.DB, stale *account) error { plainly(db, "WHERE"); return db.Delete(stale).Error },
		"a slice": func(db *gorm.DB, stale *account) error {
			plainly(db, "WHERE")
			return db.Model(&[]account{*stale}).Update("note", "stale").Error
		},
		"in bulk": func(db *gorm.DB, _ *account) error {
			plainly(db, "SET")
			return db.Model(&account{}).Where("id = 1").Update("note", "stale").Error
		},
		"ON CONFLICT": func(db *gorm.DB, stale *account) error {
			plainly(db, "ON CONFLICT")
			return db.Save(&[]account{*stale}).Error
		},
		"an own builder": func(db *gorm.DB, stale *account) error { return db.Scopes(ownWhere).Save(stale).Error },
		"a callback": func(db *gorm.DB, stale *account) error {
			stand.Must(t, db.Callback().Update().Replace("gorm:update", func(tx *gorm.DB) {
				if tx.Error == nil {
					res, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, "UPDATE accounts SET note = 'stale' WHERE id = 1")
					stand.Must(t, err)
					tx.RowsAffected, _ = res.RowsAffected()
				}
			}))
			return db.Save(stale).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, a := stand.Stored(t, account{ID: 1})
			stale := a
			a.Balance = 5
			stand.Must(t, db.Save(&a).Error)
			stale.Note = "stale"
			err := write(db, &stale)
			if row := stand.Row[account](t, db, 1); row != a {
				t.Errorf("the row is %+v after %v", row, err)
			}
			if err == nil || !strings.Contains(err.Error(), "nothing was compared") {
				t.Error(err)
			}
		})
	}
}
