package gormlock_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

// TestMarks_afterTheStatement: a db that has run a statement is given to another one as a group of its conditions. What
// it carries is not done there, and not dropped.
func TestMarks_afterTheStatement(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&account{}})
	mustDo(t, db.Create(&account{ID: 1, Balance: 1}))
	for name, run := range map[string]func(q *gorm.DB) *gorm.DB{
		"create": func(q *gorm.DB) *gorm.DB { return q.Create(&account{}) },
		"update": func(q *gorm.DB) *gorm.DB { return q.Model(&account{}).Update("balance", 5) },
		"delete": func(q *gorm.DB) *gorm.DB { return q.Delete(&account{}) },
		"find":   func(q *gorm.DB) *gorm.DB { return q.Find(&[]account{}) },
		"first":  func(q *gorm.DB) *gorm.DB { return q.First(&account{}) },
		"count":  func(q *gorm.DB) *gorm.DB { return q.Model(&account{}).Count(new(int64)) },
		"row": func(q *gorm.DB) *gorm.DB {
			q = q.Model(&account{}).Select("balance")
			_ = q.Row().Scan(new(int64))
			return q
		},
		"exec": func(q *gorm.DB) *gorm.DB { return q.Exec("select 1") },
	} {
		for clauseName, c := range map[string]clause.Expression{
			"XactLock": gormlock.XactLock(gormlock.Key("again")), "IgnoreVersion": gormlock.IgnoreVersion(),
			"ExpectVersion": gormlock.ExpectVersion(99), "RowLock": gormlock.RowLock(gormlock.ForUpdate),
		} {
			inTx(t, db, func(tx *gorm.DB) {
				mustDo(t, tx.SavePoint("before"))
				q := tx.Clauses(c).Where("id = 2") // a chain: what is added to it stays
				for range 2 {
					_ = run(q).Error
				}
				mustDo(t, tx.RollbackTo("before"))
				again := tx.Model(&account{}).Where("id = 1").Where(q).UpdateColumn("balance", 7)
				if again.Error == nil || !strings.Contains(again.Error.Error(), "put it on the statement") {
					t.Errorf("%s, %s: %v: %s", name, clauseName, again.Error, again.Statement.SQL.String())
				}
			})
		}
	}
}
