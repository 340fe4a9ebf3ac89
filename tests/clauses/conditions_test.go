package clauses_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestMarks_leaveConditionsAsTheyAre: a db that carries a clause of ours gives its conditions to itself: what is written
// are the rows that would be written without the clause.
func TestMarks_leaveConditionsAsTheyAre(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	refill := func(tx *gorm.DB) {
		stand.MustDo(t, tx.Exec("delete from accounts"))
		stand.MustDo(t, tx.Create(&[]stand.Account{{ID: 1, Balance: 1}, {ID: 2, Balance: 1}, {ID: 3, Balance: 1}}))
	}
	type write = func(asked *gorm.DB) *gorm.DB
	for name, write := range map[string]write{
		"a group of one Or, delete": func(q *gorm.DB) *gorm.DB { return q.Where(q.Or("id = ?", 1)).Delete(&stand.Account{}) },
		"a group of one Or": func(q *gorm.DB) *gorm.DB {
			return q.Model(&stand.Account{}).Where(q.Or("id = ?", 1)).Update("balance", 50)
		},
		"an empty Or": func(q *gorm.DB) *gorm.DB {
			return q.Model(&stand.Account{}).Where("id = 1").Or(q).Update("balance", 50)
		},
		"nothing else": func(q *gorm.DB) *gorm.DB { return q.Model(&stand.Account{}).Or(q).Update("balance", 50) },
		"nothing in a group": func(q *gorm.DB) *gorm.DB {
			return q.Where(q.Or(q)).Delete(&stand.Account{})
		},
		"Not of an Or of a map": func(q *gorm.DB) *gorm.DB {
			return q.Model(&stand.Account{}).Not(q.Or(map[string]any{"id": 1, "balance": 1})).Update("balance", 50)
		},
		"Not of two": func(q *gorm.DB) *gorm.DB {
			return q.Model(&stand.Account{}).Not(q.Or(map[string]any{"id": 1}), q.Where("balance = 1")).Update("balance", 50)
		},
		"named arguments": func(q *gorm.DB) *gorm.DB {
			return q.Model(&stand.Account{}).Where(q.Or("id = @x OR balance = @x", map[string]any{"x": 1})).Where("id = 2").Update("balance", 50)
		},
		"an empty Not": func(q *gorm.DB) *gorm.DB {
			return q.Model(&stand.Account{}).Where("id = 1").Not(q).Update("balance", 50)
		},
		"Not of one Or": func(q *gorm.DB) *gorm.DB {
			return q.Model(&stand.Account{}).Where("id < 3").Not(q.Or("id = 2")).Update("balance", 50)
		},
		"Or of a group": func(q *gorm.DB) *gorm.DB {
			return q.Model(&stand.Account{}).Where("id = 0").Or(q.Where("id = 1").Where("balance = 1")).Update("balance", 50)
		},
		"groups in groups": func(q *gorm.DB) *gorm.DB {
			return q.Model(&stand.Account{}).Where(q.Where(q.Or("id = 1").Or("id = 2")).Where(q.Not("id = 2"))).Update("balance", 50)
		},
	} {
		rowsAfter := func(asked *gorm.DB) ([]stand.Account, error) {
			tx := asked.Session(&gorm.Session{NewDB: true})
			refill(tx)
			err := write(asked).Error
			rows := []stand.Account{}
			stand.MustDo(t, tx.Order("id").Find(&rows))
			return rows, err
		}
		want, wantErr := rowsAfter(db.Session(&gorm.Session{}))
		for clauseName, c := range map[string]clause.Expression{
			"ExpectVersion": gormlock.ExpectVersion(1), "IfMatch": stand.IfMatch(`"1"`, `"98"`), "XactLock": gormlock.XactLock(gormlock.Key("marks")), "IgnoreVersion": gormlock.IgnoreVersion(),
		} {
			found, err := rowsAfter(db.Clauses(c).Session(&gorm.Session{}))
			stand.Equal(t, name+", "+clauseName, fmt.Sprint(found), fmt.Sprint(want))
			if !errors.Is(err, wantErr) {
				t.Errorf("%s, %s: %v, without %v", name, clauseName, err, wantErr)
			}
		}
	}
	stand.InTx(t, db, func(tx *gorm.DB) {
		refill(tx)
		locked := tx.Clauses(gormlock.RowLock(gormlock.ForUpdate)).Session(&gorm.Session{})
		var rows []stand.Account
		stand.MustDo(t, locked.Where(locked.Or("id = 1")).Find(&rows))
		stand.Equal(t, "rows locked", len(rows), 1)
	})
}

// TestMarks_differInNoStatement: the SQL of random conditions is that of a db without the clause.
func TestMarks_differInNoStatement(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}}).Session(&gorm.Session{DryRun: true})
	plain := db.Session(&gorm.Session{})
	asked := map[string]*gorm.DB{
		"IgnoreVersion": db.Clauses(gormlock.PreserveVersion()).Session(&gorm.Session{}),
		"XactLock":      db.Clauses(gormlock.XactLock(gormlock.Key("marks"))).Session(&gorm.Session{}),
	}
	for seed := range uint64(2000) {
		for name, with := range asked {
			text := func(q *gorm.DB) string {
				random := rand.New(rand.NewPCG(seed, 1))
				tx := randomConditions(random, q, q, 3)
				if random.IntN(3) == 0 {
					tx = tx.Model(&stand.Account{}).Select("count(*)").Group("note").Having(randomConditions(random, q, q, 2)).Find(&[]stand.Account{})
				} else {
					tx = tx.Find(&[]stand.Account{})
				}
				return fmt.Sprint(tx.Statement.SQL.String(), tx.Statement.Vars, tx.Error)
			}
			if want, got := text(plain), text(with); got != want {
				t.Fatalf("%s, %d:\n%s\nwithout:\n%s", name, seed, got, want)
			}
		}
	}
}

// randomConditions adds some to tx, whose groups are made of q.
func randomConditions(random *rand.Rand, tx, q *gorm.DB, depth int) *gorm.DB {
	for range random.IntN(4) {
		var query any
		var args []any
		switch n := random.IntN(6); {
		case n < 2 && depth > 0:
			query = randomConditions(random, q, q, depth-1)
		case n == 2:
			query = map[string]any{"id": 1, "balance": 2}
		case n == 3:
			query, args = "id = @x OR balance = @x", []any{map[string]any{"x": 3}}
		case n == 4:
			query = stand.Account{ID: 4, Balance: 5}
		default:
			query, args = "note = ?", []any{"n"}
		}
		switch random.IntN(3) {
		case 0:
			tx = tx.Where(query, args...)
		case 1:
			tx = tx.Or(query, args...)
		default:
			tx = tx.Not(query, args...)
		}
	}
	return tx
}

// TestMarks_areNotHeededByLess: a statement around a group does what the group asks, or fails.
func TestMarks_areNotHeededByLess(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.MustDo(t, db.Create(&stand.Account{ID: 1, Balance: 1}))
	db = db.Session(&gorm.Session{DryRun: true})
	key := gormlock.Key("less")
	preserving := db.Clauses(gormlock.PreserveVersion()).Session(&gorm.Session{})
	for name, tx := range map[string]*gorm.DB{
		"a shared lock":    db.Clauses(gormlock.XactLock(key, gormlock.Shared())).Where(db.Clauses(gormlock.XactLock(key)).Where("id = 1")).Find(&[]stand.Account{}),
		"a second clause":  preserving.Model(&stand.Account{}).Where(preserving.Clauses(gormlock.XactLock(key)).Clauses(gormlock.PreserveVersion()).Where("id = 1")).Update("balance", 5),
		"a weaker RowLock": db.Clauses(gormlock.RowLock(gormlock.ForShare)).Where(db.Clauses(gormlock.RowLock(gormlock.ForUpdate)).Where("id = 1")).Find(&[]stand.Account{}),
	} {
		if !errors.Is(tx.Error, gormlock.ErrSubQuery) {
			t.Errorf("%s: %v", name, tx.Error)
		}
	}
}

// TestMarks_ofSharedSessions: a db that carries a clause for its writes reads as one without.
func TestMarks_ofSharedSessions(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3).Begin()
	defer db.Rollback()
	for name, c := range map[string]clause.Expression{"IgnoreFence": gormlock.IgnoreFence(), "XactLock": gormlock.XactLock(gormlock.Key("shared"))} {
		q := db.Clauses(c).Session(&gorm.Session{})
		var n int64
		for what, tx := range map[string]*gorm.DB{
			"Having":       q.Model(&stand.Job{}).Select("state").Group("state").Having(q.Where("count(*) > 0")).Find(&[]stand.Job{}),
			"clause.Where": q.Where(clause.Where{Exprs: q.Where("jobs.id > 0").Statement.Clauses["WHERE"].Expression.(clause.Where).Exprs}).Find(&[]stand.Job{}), //nolint:forcetypeassert // it is one
			"Joins":        q.Joins("Queue", q.Where("paused = false")).Find(&[]stand.Job{}),
			"Count":        q.Model(&stand.Job{}).Where(q.Where("id > 0").Or("id < 0")).Count(&n),
		} {
			if tx.Error != nil {
				t.Errorf("%s, %s: %v", name, what, tx.Error)
			}
		}
	}
	stand.MustDo(t, db.Clauses(gormlock.IgnoreVersion()).Preload("Steps", db.Clauses(gormlock.IgnoreVersion()).Where("id > 0")).Find(&[]stand.Job{}))
	kept := db.Session(&gorm.Session{})
	kept = kept.Where("true")
	kept.Statement.Clauses["WHERE"] = clause.Clause{Name: "WHERE", Expression: clause.Expr{SQL: "id = 2"}}
	var rows []stand.Job
	stand.MustDo(t, kept.Clauses(gormlock.IgnoreVersion()).Unscoped().Find(&rows))
	stand.Equal(t, "rows of another kind of condition", len(rows), 1)
}

// hooked asks for something in a hook before its write, or in one after its statement.
type hooked struct {
	ID      int64
	Balance int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (h *hooked) BeforeCreate(tx *gorm.DB) error { return addAsked(tx, "before") }
func (h *hooked) BeforeUpdate(tx *gorm.DB) error { return addAsked(tx, "before") }
func (h *hooked) BeforeDelete(tx *gorm.DB) error { return addAsked(tx, "before") }
func (h *hooked) AfterCreate(tx *gorm.DB) error  { return addAsked(tx, "after") }
func (h *hooked) AfterUpdate(tx *gorm.DB) error  { return addAsked(tx, "after") }
func (h *hooked) AfterDelete(tx *gorm.DB) error  { return addAsked(tx, "after") }
func (h *hooked) AfterFind(tx *gorm.DB) error    { return addAsked(tx, "after") }

// addAsked adds what the session asks for at that time to the statement of a hook.
func addAsked(tx *gorm.DB, when string) error {
	if asks, ok := tx.Get(when); ok {
		tx.Statement.AddClause(asks.(clause.Interface)) //nolint:forcetypeassert // it is one
	}
	return nil
}

// TestMarks_ofHooks: what a hook asks of its own statement happens, or is an error; conditions it adds none.
func TestMarks_ofHooks(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&hooked{}})
	stand.MustDo(t, db.Create(&[]hooked{{ID: 1}, {ID: 2}}))
	writes := map[string]func(tx *gorm.DB) *gorm.DB{
		"update":     func(tx *gorm.DB) *gorm.DB { return tx.Model(&hooked{ID: 1, Version: 1}).Update("balance", 5) },
		"update all": func(tx *gorm.DB) *gorm.DB { return tx.Model(&hooked{}).Update("balance", 5) },
		"delete":     func(tx *gorm.DB) *gorm.DB { return tx.Delete(&hooked{ID: 1, Version: 1}) },
		"delete all": func(tx *gorm.DB) *gorm.DB { return tx.Delete(&hooked{}) },
		"create":     func(tx *gorm.DB) *gorm.DB { return tx.Create(&hooked{}) },
	}
	for name, write := range writes {
		for clauseName, c := range map[string]clause.Interface{
			"ExpectVersion": gormlock.ExpectVersion(99), "IfMatch": stand.IfMatch("*"), "IfUnchanged": gormlock.IfUnchanged(&hooked{}, "balance"), "PreserveVersion": gormlock.PreserveVersion(),
		} {
			err := write(db.Set("before", c)).Error
			if err == nil || !strings.Contains(err.Error(), "in a hook") {
				t.Errorf("%s, %s: %v", name, clauseName, err)
			}
		}
		stand.InTx(t, db, func(tx *gorm.DB) {
			key := gormlock.Key("hook of " + name)
			err := write(tx.Set("before", gormlock.XactLock(key))).Error
			if strings.HasSuffix(name, "all") != errors.Is(err, gorm.ErrMissingWhereClause) {
				t.Error(name, err)
			}
			if err == nil && locksOf(t, tx) != 1 {
				t.Errorf("%s: %d locks are held", name, locksOf(t, tx))
			}
		})
	}
	var rows []hooked
	stand.MustDo(t, db.Find(&rows))
	stand.Equal(t, "rows", len(rows), 2)
}

// locksOf counts the advisory locks that the transaction holds.
func locksOf(t *testing.T, tx *gorm.DB) int64 {
	t.Helper()
	var n int64
	stand.MustDo(t, tx.Raw("select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and granted").Scan(&n))
	return n
}

// claiming claims jobs in the hooks of a write, where tx is a session on the hook's own statement.
type claiming struct {
	ID      int64
	Claimed int `gorm:"-"`
}

func (c *claiming) claim(tx *gorm.DB) error {
	rows, err := gormlock.Claim[stand.Job](tx, 1, stand.Running, stand.Ready)
	if err == nil {
		err = gormlock.LockRow(tx, &stand.Job{ID: 1})
	}
	if err == nil {
		err = gormlock.LockRows(tx, &[]stand.Job{{ID: 1}})
	}
	c.Claimed += len(rows)
	return err
}

func (c *claiming) BeforeCreate(tx *gorm.DB) error { return c.claim(tx) }
func (c *claiming) AfterUpdate(tx *gorm.DB) error  { return c.claim(tx) }
func (c *claiming) BeforeDelete(tx *gorm.DB) error { return c.claim(tx) }

func TestClaim_inHooks(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 5)
	stand.MustDo(t, db.Exec("create table claimings (id bigint primary key)"))
	c := claiming{ID: 1}
	stand.MustDo(t, db.Create(&c))
	stand.MustDo(t, db.Model(&c).Where("id = 1").Update("id", 2))
	stand.MustDo(t, db.Where("id = 2").Delete(&c))
	stand.Equal(t, "claimed", c.Claimed, 3)
}

// TestMarks_ofAfterHooks: it is too late in a hook after the statement, and the write is taken back.
func TestMarks_ofAfterHooks(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&hooked{}})
	stand.MustDo(t, db.Create(&hooked{ID: 1}))
	for clauseName, c := range map[string]clause.Interface{
		"XactLock": gormlock.XactLock(gormlock.Key("late")), "ExpectVersion": gormlock.ExpectVersion(99), "IfMatch": stand.IfMatch("*"), "IgnoreVersion": gormlock.IgnoreVersion(),
	} {
		for name, run := range map[string]func(tx *gorm.DB) *gorm.DB{
			"create": func(tx *gorm.DB) *gorm.DB { return tx.Create(&hooked{ID: 2}) },
			"update": func(tx *gorm.DB) *gorm.DB { return tx.Model(&hooked{ID: 1, Version: 1}).Update("balance", 5) },
			"delete": func(tx *gorm.DB) *gorm.DB { return tx.Delete(&hooked{ID: 1, Version: 1}) },
			"find":   func(tx *gorm.DB) *gorm.DB { return tx.Find(&[]hooked{}) },
		} {
			if err := run(db.Set("after", c)).Error; err == nil || !strings.Contains(err.Error(), "after the statement had run") {
				t.Errorf("%s, %s: %v", name, clauseName, err)
			}
		}
	}
	var rows []hooked
	stand.MustDo(t, db.Find(&rows))
	stand.Equal(t, "rows", fmt.Sprint(rows), "[{1 0 1}]")
}
