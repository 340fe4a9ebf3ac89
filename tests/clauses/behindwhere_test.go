package clauses_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type tenanted struct {
	ID, Tenant, Amount int64
	Version            int64 `gorm:"not null;default:1" gormlock:"version"`
}

// Another plugin writes something behind the conditions of a write. It may be an Or, which must not lead around what gormlock compares.
func TestVersion_withTextBehindTheConditions(t *testing.T) {
	t.Parallel()
	for _, behind := range []string{"/* a comment */", "OR tenant = 1", "AND tenant = 1"} {
		db := stand.Versioned(t, []any{&tenanted{}})
		add := func(db *gorm.DB) {
			if c, has := db.Statement.Clauses["WHERE"]; has {
				c.AfterExpression = clause.Expr{SQL: behind}
				db.Statement.Clauses["WHERE"] = c
			}
		}
		stand.Must(t, db.Callback().Update().Before("gorm:update").Register("behind", add))
		stand.Must(t, db.Callback().Delete().Before("gorm:delete").Register("behind", add))
		mine, other := stand.Made(t, db, tenanted{Tenant: 1}), stand.Made(t, db, tenanted{Tenant: 1})
		old := mine
		stand.MustDo(t, db.Model(&mine).Update("amount", 10))
		for how, write := range map[string]func(tx *gorm.DB) *gorm.DB{
			"Update":      func(tx *gorm.DB) *gorm.DB { return tx.Model(&old).Update("amount", 1) },
			"Save":        func(tx *gorm.DB) *gorm.DB { return tx.Save(&old) },
			"Save, where": func(tx *gorm.DB) *gorm.DB { return tx.Where("tenant = 1").Save(&old) },
			"Delete":      func(tx *gorm.DB) *gorm.DB { return tx.Delete(&old) },
			"a slice":     func(tx *gorm.DB) *gorm.DB { return tx.Model([]*tenanted{&old}).Update("amount", 1) },
			"ExpectVersion": func(tx *gorm.DB) *gorm.DB {
				return tx.Clauses(gormlock.ExpectVersion(7)).Model(&tenanted{}).Where("id = ?", mine.ID).Update("amount", 1)
			},
			"ExpectVersion, Or": func(tx *gorm.DB) *gorm.DB {
				return tx.Clauses(gormlock.ExpectVersion(7)).Model(&tenanted{}).Where("id = ?", mine.ID).Or("id = 0").Update("amount", 1)
			},
			"ExpectVersion, a key": func(tx *gorm.DB) *gorm.DB {
				return tx.Clauses(gormlock.ExpectVersion(7)).Model(&tenanted{ID: mine.ID}).Update("amount", 1)
			},
			"IfUnchanged": func(tx *gorm.DB) *gorm.DB {
				return tx.Clauses(gormlock.IfUnchanged(&tenanted{ID: mine.ID, Amount: 3}, "amount")).Model(&tenanted{}).Where("id = ?", mine.ID).Update("amount", 1)
			},
		} {
			if tx := write(db); tx.Error == nil {
				t.Errorf("%s, %s: no error, %d rows", behind, how, tx.RowsAffected)
			}
			stand.Equal(t, how, stand.Row[tenanted](t, db, mine.ID).Amount, 10)
			stand.Equal(t, how, stand.Row[tenanted](t, db, other.ID).Amount, 0)
		}
		stand.MustDo(t, db.Model(&mine).Update("amount", 11))
		stand.Equal(t, "the row", stand.Row[tenanted](t, db, mine.ID), mine)
		stand.Equal(t, "the other row", stand.Row[tenanted](t, db, other.ID), other)
	}
}
