package clauses_test

import (
	"database/sql"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestMarks_whereNoConditionIsBuilt: GORM leaves conditions out of raw SQL, and those of joins and HAVING out of writes.
// What they ask for is not left out without a word.
func TestMarks_whereNoConditionIsBuilt(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3)
	for name, run := range map[string]func(tx, g *gorm.DB) error{
		"Exec":     func(tx, g *gorm.DB) error { return tx.Where(g).Exec("update jobs set state = 'x' where id = 1").Error },
		"Raw":      func(tx, g *gorm.DB) error { return tx.Where(g).Raw("select 1").Scan(new(int64)).Error },
		"Raw Find": func(tx, g *gorm.DB) error { return tx.Where(g).Raw("select * from jobs").Find(&[]stand.Job{}).Error },
		"Raw Row":  func(tx, g *gorm.DB) error { return tx.Where(g).Raw("select 1").Row().Scan(new(int64)) },
		"Raw Rows": func(tx, g *gorm.DB) error { return stand.ErrorOf(tx.Where(g).Raw("select 1").Rows()) },
		"Joins in an update": func(tx, g *gorm.DB) error {
			return tx.Model(&stand.Job{}).Joins("Queue", g).Where("id = 1").UpdateColumn("state", "x").Error
		},
		"Joins in a delete": func(tx, g *gorm.DB) error { return tx.Joins("Queue", g).Where("id = 1").Delete(&stand.Job{}).Error },
		"Joins in a create": func(tx, g *gorm.DB) error { return tx.Joins("Queue", g).Create(&stand.Job{ID: 9, QueueID: 1}).Error },
		"Having in an update": func(tx, g *gorm.DB) error {
			return tx.Model(&stand.Job{}).Having(g).Where("id = 1").UpdateColumn("state", "x").Error
		},
		"Having in a delete": func(tx, g *gorm.DB) error { return tx.Having(g).Where("id = 1").Delete(&stand.Job{}).Error },
	} {
		for clauseName, c := range map[string]clause.Expression{
			"XactLock": gormlock.XactLock(gormlock.Key("left out")), "ExpectVersion": gormlock.ExpectVersion(99), "IfMatch": stand.IfMatch(`"98"`, `"99"`), "RowLock": gormlock.RowLock(gormlock.ForUpdate),
			"IgnoreVersion": gormlock.IgnoreVersion(), "IgnoreFence": gormlock.IgnoreFence(),
		} {
			if strings.HasPrefix(name, "Raw") && strings.HasPrefix(clauseName, "Ignore") {
				continue // what is read says nothing of versions
			}
			for kind, group := range map[string]func(tx *gorm.DB) *gorm.DB{
				"at once": func(tx *gorm.DB) *gorm.DB { return tx.Clauses(c).Where("true") },
				"scope": func(tx *gorm.DB) *gorm.DB {
					return tx.Scopes(func(q *gorm.DB) *gorm.DB { return q.Clauses(c).Where("true") })
				},
				"executed": func(tx *gorm.DB) *gorm.DB {
					q := tx.Clauses(c).Where("true")
					_ = q.Limit(1).Find(&[]stand.Job{}).Error
					q.Error = nil
					return q
				},
			} {
				stand.InTx(t, db, func(tx *gorm.DB) {
					stand.MustDo(t, tx.SavePoint("before"))
					err := run(tx, group(tx))
					if err == nil || !strings.Contains(err.Error(), "put it on the statement") {
						t.Errorf("%s, %s, %s: %v", name, clauseName, kind, err)
					}
					stand.MustDo(t, tx.RollbackTo("before"))
				})
			}
		}
	}
	stand.InTx(t, db, func(tx *gorm.DB) { // what the statement does itself may stand in a group too
		locked := tx.Clauses(gormlock.XactLock(gormlock.Key("left out"))).Session(&gorm.Session{})
		stand.MustDo(t, locked.Where(locked.Where("true")).Exec("select 1"))
		stand.MustDo(t, locked.Model(&stand.Job{}).Having(locked.Where("true")).Where("id = 1").UpdateColumn("state", "x"))
		stand.Equal(t, "locks", locksOf(t, tx), 1)
	})
}

// TestMarks_whereNoSubQueryIsBuilt: nor are the sub-queries of such conditions.
func TestMarks_whereNoSubQueryIsBuilt(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3)
	for name, run := range map[string]func(tx, sub *gorm.DB) error{
		"Exec":        func(tx, sub *gorm.DB) error { return tx.Where("id IN (?)", sub).Exec("select 1").Error },
		"Exec, a map": func(tx, sub *gorm.DB) error { return tx.Where(map[string]any{"id": sub}).Exec("select 1").Error },
		"Exec, a Not": func(tx, sub *gorm.DB) error { return tx.Not("id IN (?)", sub).Or("id = 1").Exec("select 1").Error },
		"Exec, a name": func(tx, sub *gorm.DB) error {
			return tx.Where("id IN (@ids)", sql.Named("ids", sub)).Exec("select 1").Error
		},
		"Raw": func(tx, sub *gorm.DB) error { return tx.Where("id IN (?)", sub).Raw("select 1").Scan(new(int64)).Error },
		"Having in an update": func(tx, sub *gorm.DB) error {
			return tx.Model(&stand.Job{}).Having("max(id) IN (?)", sub).Where("id = 1").UpdateColumn("state", "x").Error
		},
		"Joins in an update": func(tx, sub *gorm.DB) error {
			return tx.Model(&stand.Job{}).Joins("Queue", tx.Where("id IN (?)", sub)).Where("id = 1").UpdateColumn("state", "x").Error
		},
	} {
		for clauseName, c := range map[string]clause.Expression{
			"XactLock": gormlock.XactLock(gormlock.Key("left out")), "ExpectVersion": gormlock.ExpectVersion(99), "IfMatch": stand.IfMatch(`"98"`, `"99"`), "RowLock": gormlock.RowLock(gormlock.ForUpdate),
		} {
			stand.InTx(t, db, func(tx *gorm.DB) {
				stand.MustDo(t, tx.SavePoint("before"))
				err := run(tx, tx.Clauses(c).Model(&stand.Job{}).Select("id").Where("id = 1"))
				if err == nil || !strings.Contains(err.Error(), "put it on the statement") {
					t.Errorf("%s, %s: %v", name, clauseName, err)
				}
				stand.MustDo(t, tx.RollbackTo("before"))
				stand.MustDo(t, tx.Where("id IN (?)", tx.Model(&stand.Job{}).Select("id")).Exec("select 1"))
			})
		}
	}
}
