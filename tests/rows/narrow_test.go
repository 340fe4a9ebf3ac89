package rows_test

import (
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// orders are ways to ask for other rows than the one that is to be locked.
var orders = map[string]func(tx *gorm.DB) *gorm.DB{
	"Or":                 func(tx *gorm.DB) *gorm.DB { return tx.Or("id = 2") },
	"Where and Or":       func(tx *gorm.DB) *gorm.DB { return tx.Where("id = 2").Or("id = 3") },
	"text":               func(tx *gorm.DB) *gorm.DB { return tx.Where("id = 2\nOR\nid = 3") },
	"text with OR in Or": func(tx *gorm.DB) *gorm.DB { return tx.Or("id = 2 OR id = 3") },
	"a clause": func(tx *gorm.DB) *gorm.DB {
		return tx.Clauses(clause.Where{Exprs: []clause.Expression{clause.Or(clause.Eq{Column: "id", Value: 2})}})
	},
	"a group": func(tx *gorm.DB) *gorm.DB { return tx.Where(tx.Where("id = 2").Or("id = 3")) },
	"Not":     func(tx *gorm.DB) *gorm.DB { return tx.Not("id = 1\nOR id = 4") },
	"a scope": func(tx *gorm.DB) *gorm.DB { return tx.Scopes(func(q *gorm.DB) *gorm.DB { return q.Or("id = 2") }) },
	"a scope's scope": func(tx *gorm.DB) *gorm.DB {
		or := func(q *gorm.DB) *gorm.DB { return q.Or("id = 2") }
		return tx.Scopes(func(q *gorm.DB) *gorm.DB { return q.Scopes(or) })
	},
	"a lock and Or": func(tx *gorm.DB) *gorm.DB {
		return tx.Scopes(gormlock.WithXactLock(gormlock.Key("narrow"))).Where("id = 2").Or("id = 3")
	},
}

// TestConditionsReachNoOtherRow: an OR on tx is about the row that is named, and not about others.
func TestConditionsReachNoOtherRow(t *testing.T) {
	t.Parallel()
	db := seats(t)
	other := stand.NewRowRival(t)
	for name, ask := range orders {
		t.Run(name, func(t *testing.T) {
			for call, lock := range map[string]func(tx *gorm.DB, s *seat) error{
				"LockRow":      func(tx *gorm.DB, s *seat) error { return gormlock.LockRow(tx, s) },
				"LockRow, Try": func(tx *gorm.DB, s *seat) error { return gormlock.LockRow(tx, s, gormlock.Try()) },
				"LockRows":     func(tx *gorm.DB, s *seat) error { return gormlock.LockRows(tx, &[]*seat{s}) },
			} {
				for id := int64(1); id <= 2; id++ {
					stand.InTx(t, db, func(tx *gorm.DB) {
						s := seat{ID: id, Name: "mine"}
						err := lock(ask(tx), &s)
						want := []int64(nil)
						if id == 2 {
							want = []int64{2}
						}
						if (err == nil) != (id == 2) || err != nil && stand.FromServer(err) || s.ID != id || (s.Name == "mine") != (id == 1) {
							t.Errorf("%s of seat %d: %v, the struct is seat %d", call, id, err, s.ID)
						}
						if locked := other.Locked("seats"); !slices.Equal(locked, want) {
							t.Errorf("%s of seat %d locks %v", call, id, locked)
						}
					})
				}
			}
		})
	}
	t.Run("a group that carries the lock of the query", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			locked := tx.Clauses(gormlock.XactLock(pgtest.Key(t)))
			locked = locked.Session(&gorm.Session{})
			stand.Must(t, gormlock.LockRow(locked.Where(locked.Where("id = 1").Or("id = 2")), &seat{ID: 1}))
		})
	})
	t.Run("what another plugin adds", func(t *testing.T) {
		db := seats(t)
		stand.Must(t, db.Callback().Query().Before("gorm:query").Register("or", func(q *gorm.DB) {
			if _, ors := q.Get("or"); ors {
				q.Statement.AddClause(clause.Where{Exprs: []clause.Expression{clause.Or(clause.Eq{Column: "id", Value: 2})}})
			}
		}))
		stand.InTx(t, db, func(tx *gorm.DB) {
			s := seat{ID: 9, Name: "mine"}
			if err := gormlock.LockRow(tx.Set("or", true), &s); err == nil || s.Name != "mine" || s.ID != 9 {
				t.Errorf("LockRow: %v, %+v", err, s)
			}
			rows := []seat{{ID: 3, Name: "mine"}}
			if err := gormlock.LockRows(tx.Set("or", true), &rows); err == nil || rows[0].Name != "mine" {
				t.Errorf("LockRows: %v, %+v", err, rows)
			}
		})
	})
}

// pen has a key of two columns, one of which may be zero.
type pen struct {
	Box     int64 `gorm:"primaryKey;autoIncrement:false"`
	ID      int64 `gorm:"primaryKey;autoIncrement:false"`
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// TestVerifyAndTouchReachNoOtherRow: nor do VerifyVersion and Touch.
func TestVerifyAndTouchReachNoOtherRow(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&pen{}})
	other := stand.NewRowRival(t)
	stand.MustDo(t, db.Create(&[]pen{{ID: 1}, {ID: 2}, {ID: 3}}))
	for name, ask := range orders {
		t.Run(name, func(t *testing.T) {
			stand.InTx(t, db, func(tx *gorm.DB) {
				if err := gormlock.VerifyVersion(ask(tx), &pen{ID: 1, Version: 1}); err == nil {
					t.Error("VerifyVersion of what the conditions leave out")
				}
				stand.Must(t, gormlock.VerifyVersion(ask(tx), &pen{ID: 2, Version: 1}))
				if locked := other.LockedAgainst("pens", "FOR UPDATE"); !slices.Equal(locked, []int64{2}) {
					t.Errorf("VerifyVersion locks %v", locked)
				}
				_ = gormlock.Touch(ask(tx).Clauses(gormlock.IgnoreVersion()), &pen{ID: 1})
				stand.Must(t, gormlock.Touch(ask(tx).Clauses(gormlock.IgnoreVersion()), &pen{ID: 2}))
				stand.Must(t, gormlock.Touch(ask(tx), &pen{ID: 2, Version: 2}))
				var pens []pen
				stand.MustDo(t, tx.Order("id").Find(&pens))
				if pens[0].Version != 1 || pens[1].Version != 3 || pens[2].Version != 1 {
					t.Errorf("Touch leaves %v", pens)
				}
			})
		})
	}
}

// TestLockRowOfWholeRows: what does not go with reading rows again is refused before anything is sent.
func TestLockRowOfWholeRows(t *testing.T) {
	t.Parallel()
	db := seats(t)
	stand.InTx(t, db, func(tx *gorm.DB) {
		tx, recorder := stand.Recorded(tx)
		pointer := &seat{ID: 1}
		for name, ask := range map[string]func(q *gorm.DB) *gorm.DB{
			"Select":             func(q *gorm.DB) *gorm.DB { return q.Select("id") },
			"Omit":               func(q *gorm.DB) *gorm.DB { return q.Omit("hall_id") },
			"Select of a clause": func(q *gorm.DB) *gorm.DB { return q.Clauses(clause.Select{Columns: []clause.Column{{Name: "id"}}}) },
			"an expression":      func(q *gorm.DB) *gorm.DB { return q.Select("id, ? AS name", "new") },
			"Model":              func(q *gorm.DB) *gorm.DB { return q.Model(&hall{}) },
		} {
			for where, tx := range map[string]*gorm.DB{"on tx": ask(tx), "in a scope": tx.Scopes(ask), "in a scope's scope": tx.Scopes(func(q *gorm.DB) *gorm.DB { return q.Scopes(ask) })} {
				one, rows := seat{ID: 1, Name: "mine", HallID: 7}, []seat{{ID: 1, Name: "mine", HallID: 7}}
				tx = tx.Session(&gorm.Session{})
				for call, err := range map[string]error{
					"LockRow": gormlock.LockRow(tx, &one), "LockRow, Try": gormlock.LockRow(tx, &one, gormlock.Try()), "LockRows": gormlock.LockRows(tx, &rows),
				} {
					if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(call, ", Try")) || one.Name != "mine" || rows[0].HallID != 7 {
						t.Errorf("%s, %s %s: %v, %+v, %+v", call, name, where, err, one, rows)
					}
				}
			}
		}
		for name, err := range map[string]error{
			"pointers to pointers": gormlock.LockRows(tx, &[]**seat{&pointer}),
			"slices":               gormlock.LockRows(tx, &[][]seat{{*pointer}}),
			"maps":                 gormlock.LockRows(tx.Model(&seat{}), &[]map[string]any{{"id": 1}}),
			"numbers":              gormlock.LockRows(tx, &[]int{1}),
			"anything":             gormlock.LockRows(tx, &[]any{pointer}),
			"another query":        gormlock.LockRow(tx.Scopes(func(*gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{NewDB: true}) }), pointer),
		} {
			if err == nil || stand.FromServer(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if seen := recorder.Seen(); len(seen) > 0 {
			t.Fatalf("sent %q", seen)
		}
		stand.Must(t, gormlock.LockRow(tx.Model(&seat{ID: 3}), pointer))
		stand.Must(t, gormlock.LockRows(tx.Model(&[]seat{}), &[]*seat{pointer}))
		stand.Equal(t, "the seat", pointer.ID, 1)
		used := tx.Where("id < 3")
		stand.MustDo(t, used.Find(&[]seat{}))
		stand.Must(t, gormlock.LockRow(used, pointer))
	})
}

// TestLockRowInDryRun: nothing is sent and nothing changes.
func TestLockRowInDryRun(t *testing.T) {
	t.Parallel()
	db := seats(t).Session(&gorm.Session{DryRun: true})
	one, rows := seat{ID: 1, Name: "mine"}, []seat{{ID: 1, Name: "mine"}}
	stand.Must(t, gormlock.LockRow(db, &one))
	stand.Must(t, gormlock.LockRow(db, &one, gormlock.Try()))
	stand.Must(t, gormlock.LockRows(db, &rows))
	stand.Equal(t, "name", one.ID+rows[0].ID, 2)
	stand.Equal(t, "name", one.Name+rows[0].Name, "minemine")
}
