package gormlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

// TestMarks_leaveConditionsAsTheyAre: a db that carries a clause of ours gives its conditions to itself: what is written
// are the rows that would be written without the clause.
func TestMarks_leaveConditionsAsTheyAre(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&account{}})
	type write = func(asked *gorm.DB) *gorm.DB
	for name, write := range map[string]write{
		"a group of one Or, delete": func(q *gorm.DB) *gorm.DB { return q.Where(q.Or("id = ?", 1)).Delete(&account{}) },
		"a group of one Or": func(q *gorm.DB) *gorm.DB {
			return q.Model(&account{}).Where(q.Or("id = ?", 1)).Update("balance", 50)
		},
		"an empty Or":  func(q *gorm.DB) *gorm.DB { return q.Model(&account{}).Where("id = 1").Or(q).Update("balance", 50) },
		"nothing else": func(q *gorm.DB) *gorm.DB { return q.Model(&account{}).Or(q).Update("balance", 50) },
		"nothing in a group": func(q *gorm.DB) *gorm.DB {
			return q.Where(q.Or(q)).Delete(&account{})
		},
		"an empty Not": func(q *gorm.DB) *gorm.DB { return q.Model(&account{}).Where("id = 1").Not(q).Update("balance", 50) },
		"Not of one Or": func(q *gorm.DB) *gorm.DB {
			return q.Model(&account{}).Where("id < 3").Not(q.Or("id = 2")).Update("balance", 50)
		},
		"Or of a group": func(q *gorm.DB) *gorm.DB {
			return q.Model(&account{}).Where("id = 0").Or(q.Where("id = 1").Where("balance = 1")).Update("balance", 50)
		},
		"groups in groups": func(q *gorm.DB) *gorm.DB {
			return q.Model(&account{}).Where(q.Where(q.Or("id = 1").Or("id = 2")).Where(q.Not("id = 2"))).Update("balance", 50)
		},
	} {
		rowsAfter := func(asked *gorm.DB) ([]account, error) {
			tx := asked.Session(&gorm.Session{NewDB: true})
			mustDo(t, tx.Exec("delete from accounts"))
			mustDo(t, tx.Create(&[]account{{ID: 1, Balance: 1}, {ID: 2, Balance: 1}, {ID: 3, Balance: 1}}))
			err := write(asked).Error
			rows := []account{}
			mustDo(t, tx.Order("id").Find(&rows))
			return rows, err
		}
		want, wantErr := rowsAfter(db.Session(&gorm.Session{}))
		for clauseName, c := range map[string]clause.Expression{
			"ExpectVersion": gormlock.ExpectVersion(1), "XactLock": gormlock.XactLock(gormlock.Key("marks")), "IgnoreVersion": gormlock.IgnoreVersion(),
		} {
			found, err := rowsAfter(db.Clauses(c).Session(&gorm.Session{}))
			equal(t, name+", "+clauseName, fmt.Sprint(found), fmt.Sprint(want))
			if !errors.Is(err, wantErr) {
				t.Errorf("%s, %s: %v, without %v", name, clauseName, err, wantErr)
			}
		}
	}
	inTx(t, db, func(tx *gorm.DB) {
		locked := tx.Clauses(gormlock.RowLock(gormlock.ForUpdate)).Session(&gorm.Session{})
		var rows []account
		mustDo(t, locked.Where(locked.Or("id = 1")).Find(&rows))
		equal(t, "rows locked", len(rows), 1)
	})
}

// hooked asks for something in the hook of a write.
type hooked struct {
	ID      int64
	Balance int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (h *hooked) add(tx *gorm.DB) error {
	if asks, ok := tx.Get("asks"); ok {
		tx.Statement.AddClause(asks.(clause.Interface)) //nolint:forcetypeassert // it is one
	}
	return nil
}

func (h *hooked) BeforeCreate(tx *gorm.DB) error { return h.add(tx) }
func (h *hooked) BeforeUpdate(tx *gorm.DB) error { return h.add(tx) }
func (h *hooked) BeforeDelete(tx *gorm.DB) error { return h.add(tx) }

// TestMarks_ofHooks: what a hook asks of its own statement happens, or is an error; conditions it adds none.
func TestMarks_ofHooks(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&hooked{}})
	mustDo(t, db.Create(&[]hooked{{ID: 1}, {ID: 2}}))
	writes := map[string]func(tx *gorm.DB) *gorm.DB{
		"update":     func(tx *gorm.DB) *gorm.DB { return tx.Model(&hooked{ID: 1, Version: 1}).Update("balance", 5) },
		"update all": func(tx *gorm.DB) *gorm.DB { return tx.Model(&hooked{}).Update("balance", 5) },
		"delete":     func(tx *gorm.DB) *gorm.DB { return tx.Delete(&hooked{ID: 1, Version: 1}) },
		"delete all": func(tx *gorm.DB) *gorm.DB { return tx.Delete(&hooked{}) },
		"create":     func(tx *gorm.DB) *gorm.DB { return tx.Create(&hooked{}) },
	}
	for name, write := range writes {
		for clauseName, c := range map[string]clause.Interface{
			"ExpectVersion": gormlock.ExpectVersion(99), "IfUnchanged": gormlock.IfUnchanged(&hooked{}, "balance"), "PreserveVersion": gormlock.PreserveVersion(),
		} {
			err := write(db.Set("asks", c)).Error
			if err == nil || !strings.Contains(err.Error(), "in a hook") {
				t.Errorf("%s, %s: %v", name, clauseName, err)
			}
		}
		inTx(t, db, func(tx *gorm.DB) {
			key := gormlock.Key("hook of " + name)
			err := write(tx.Set("asks", gormlock.XactLock(key))).Error
			if strings.HasSuffix(name, "all") != errors.Is(err, gorm.ErrMissingWhereClause) {
				t.Error(name, err)
			}
			if err == nil && locksOf(t, tx) != 1 {
				t.Errorf("%s: %d locks are held", name, locksOf(t, tx))
			}
		})
	}
	var rows []hooked
	mustDo(t, db.Find(&rows))
	equal(t, "rows", len(rows), 2)
}

// locksOf counts the advisory locks that the transaction holds.
func locksOf(t *testing.T, tx *gorm.DB) int64 {
	t.Helper()
	var n int64
	mustDo(t, tx.Raw("select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and granted").Scan(&n))
	return n
}
