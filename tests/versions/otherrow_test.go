package versions_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type softAccount struct {
	ID        int64
	Balance   int64
	Note      string
	DeletedAt gorm.DeletedAt
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

type pairAccount struct {
	Tenant  int64 `gorm:"primaryKey;autoIncrement:false"`
	ID      int64 `gorm:"primaryKey;autoIncrement:false"`
	Balance int64
	Note    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// spellings are conditions that let the row of the struct through, and others too.
var spellings = map[string]func(db *gorm.DB) *gorm.DB{
	"Or":             func(db *gorm.DB) *gorm.DB { return db.Where("note = ?", "x").Or("note = ?", "n") },
	"Or first":       func(db *gorm.DB) *gorm.DB { return db.Or("note = ?", "x").Or("note = ?", "n") },
	"Or, then Where": func(db *gorm.DB) *gorm.DB { return db.Or("note = ?", "x").Where("note = ?", "n").Or("note IS NULL") },
	"Or of a map": func(db *gorm.DB) *gorm.DB {
		return db.Where(map[string]any{"note": "x"}).Or(map[string]any{"note": "n"})
	},
	"Or of a group": func(db *gorm.DB) *gorm.DB {
		return db.Where("note = ?", "x").Or(db.Where("note = ?", "n").Where("balance > 0"))
	},
	"spaces":      func(db *gorm.DB) *gorm.DB { return db.Where("note = ? OR note = ?", "x", "n") },
	"tab":         func(db *gorm.DB) *gorm.DB { return db.Where("note = ?\n\tOR note = ?", "x", "n") },
	"lines":       func(db *gorm.DB) *gorm.DB { return db.Where("note = ?\nor\nnote = ?", "x", "n") },
	"parentheses": func(db *gorm.DB) *gorm.DB { return db.Where("(note = ?)OR(note = ?)", "x", "n") },
	"comments":    func(db *gorm.DB) *gorm.DB { return db.Where("note = ?/**/OR/**/note = ?", "x", "n") },
	"named": func(db *gorm.DB) *gorm.DB {
		return db.Where("note = @x \tOR\tnote = @n", map[string]any{"x": "x", "n": "n"})
	},
	"two, the tab": func(db *gorm.DB) *gorm.DB { return db.Where("balance > 0").Where("note = ?\tOR note = ?", "x", "n") },
	"Not":          func(db *gorm.DB) *gorm.DB { return db.Not("note = ?\tOR note = ?", "q", "n") },
	"expression": func(db *gorm.DB) *gorm.DB {
		return db.Where(map[string]any{"note": gorm.Expr("note OR note = ?", "n")})
	},
	"expression in a list": func(db *gorm.DB) *gorm.DB {
		return db.Where(map[string]any{"note": []any{gorm.Expr("note OR note = ?", "n")}})
	},
	"expression in a list of clauses": func(db *gorm.DB) *gorm.DB {
		return db.Where(clause.IN{Column: "note", Values: []any{gorm.Expr("note OR note = ?", "n")}})
	},
	"raw column": func(db *gorm.DB) *gorm.DB {
		return db.Where(clause.Eq{Column: clause.Column{Name: "note = 'n' OR note", Raw: true}, Value: "x"})
	},
	"raw column of a list": func(db *gorm.DB) *gorm.DB {
		return db.Where(clause.IN{Column: clause.Column{Name: "note = 'n' OR note", Raw: true}, Values: []any{"x", "y"}})
	},
	"clause.Or": func(db *gorm.DB) *gorm.DB {
		return db.Clauses(clause.Where{Exprs: []clause.Expression{clause.Eq{Column: "note", Value: "x"}, clause.Or(clause.Eq{Column: "note", Value: "n"})}})
	},
	"scope": func(db *gorm.DB) *gorm.DB {
		return db.Scopes(func(q *gorm.DB) *gorm.DB { return q.Where("note = ?", "x").Or("note = ?", "n") })
	},
	"a comment to the end": func(db *gorm.DB) *gorm.DB { return db.Where("note = 'x' OR note = 'n' -- as it is\n") },
}

// aboutOne are the statements that name a struct.
func aboutOne[T any](a *T) map[string]func(db *gorm.DB) error {
	before, list := *a, []T{*a}
	form := struct{ Balance int64 }{5}
	return map[string]func(db *gorm.DB) error{
		"Update":        func(db *gorm.DB) error { return db.Model(a).Update("balance", 5).Error },
		"expression":    func(db *gorm.DB) error { return db.Model(a).Update("balance", gorm.Expr("balance + 1")).Error },
		"Updates, map":  func(db *gorm.DB) error { return db.Model(a).Updates(map[string]any{"balance": 5}).Error },
		"Updates, form": func(db *gorm.DB) error { return db.Model(a).Updates(form).Error },
		"UpdateColumn":  func(db *gorm.DB) error { return db.Model(a).UpdateColumn("balance", 5).Error },
		"Updates":       func(db *gorm.DB) error { return db.Updates(a).Error },
		"Save":          func(db *gorm.DB) error { return db.Save(a).Error },
		"Delete":        func(db *gorm.DB) error { return db.Delete(a).Error },
		"Delete, Model": func(db *gorm.DB) error { return db.Model(a).Delete(new(T)).Error },
		"Unscoped":      func(db *gorm.DB) error { return db.Unscoped().Delete(a).Error },
		"slice":         func(db *gorm.DB) error { return db.Model(&list).Update("balance", 5).Error },
		"slice, Delete": func(db *gorm.DB) error { return db.Delete(&list).Error },
		"own SET": func(db *gorm.DB) error {
			return db.Model(a).Clauses(setBalance).Updates(map[string]any{}).Error
		},
		"slice, own SET": func(db *gorm.DB) error {
			return db.Model(&list).Clauses(setBalance).Updates(map[string]any{}).Error
		},
		"Returning": func(db *gorm.DB) error { return db.Clauses(clause.Returning{}).Model(a).Update("balance", 5).Error },
		"IfUnchanged": func(db *gorm.DB) error {
			return db.Clauses(gormlock.IfUnchanged(&before, "balance")).Model(a).Update("balance", 5).Error
		},
		"ExpectVersion": func(db *gorm.DB) error {
			return db.Clauses(gormlock.ExpectVersion(1)).Model(a).Update("balance", 5).Error
		},
	}
}

var setBalance = clause.Set{{Column: clause.Column{Name: "balance"}, Value: 5}}

// The conditions of the caller stand in brackets beside the key of the struct, however they are spelled: another row that
// they let through is neither written, nor does it answer for the struct.
func TestAnotherRowDoesNotAnswer(t *testing.T) {
	t.Parallel()
	t.Run("Account", func(t *testing.T) {
		t.Parallel()
		anotherRow(t, stand.Versioned(t, []any{&stand.Account{}}), func(id int64) stand.Account {
			return stand.Account{ID: id, Balance: 100, Note: "n", Version: 1}
		})
	})
	t.Run("soft", func(t *testing.T) {
		t.Parallel()
		anotherRow(t, stand.Versioned(t, []any{&softAccount{}}), func(id int64) softAccount {
			return softAccount{ID: id, Balance: 100, Note: "n", Version: 1}
		})
	})
	t.Run("pair", func(t *testing.T) {
		t.Parallel()
		anotherRow(t, stand.Versioned(t, []any{&pairAccount{}}), func(id int64) pairAccount {
			return pairAccount{Tenant: id - 1, ID: id, Balance: 100, Note: "n", Version: 1}
		})
	})
}

func anotherRow[T comparable](t *testing.T, db *gorm.DB, row func(id int64) T) {
	for spelling, where := range spellings {
		for name := range aboutOne(new(T)) {
			for _, stale := range []bool{true, false} {
				stand.Must(t, db.Unscoped().Where("1=1").Delete(new(T)).Error)
				a, b := row(1), row(2)
				stand.Must(t, db.Create(&a).Error)
				stand.Must(t, db.Create(&b).Error)
				if stale {
					stand.Must(t, db.Exec("UPDATE "+stand.TableOf(db, new(T))+" SET balance = 777, version = 2 WHERE id = 1").Error)
				}
				before := a
				err := aboutOne(&a)[name](where(db))
				var other T
				what := spelling + ", " + name
				if err := db.Unscoped().First(&other, "id = 2").Error; err != nil {
					t.Errorf("%s: the other row: %v", what, err)
				} else {
					stand.Equal(t, what+": the other row", other, b)
				}
				switch {
				case !stale:
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
				case !errors.Is(err, gormlock.ErrStale):
					t.Errorf("%s: %v", what, err)
				default:
					stand.Equal(t, what, a, before)
				}
			}
		}
	}
}

// What a plugin adds behind gormlock is in brackets too.
func TestAnotherRowDoesNotAnswer_conditionsOfPlugins(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	a, _ := stand.Made(t, db, stand.Account{Balance: 1}), stand.Made(t, db, stand.Account{Balance: 1})
	for _, on := range []string{"gorm:update", "gorm:delete"} {
		add := func(db *gorm.DB) {
			db.Statement.AddClause(clause.Where{Exprs: []clause.Expression{clause.Or(clause.Expr{SQL: "1=1"})}})
		}
		if on == "gorm:update" {
			stand.Must(t, db.Callback().Update().Before(on).After("gormlock:before_write").Register("test:add", add))
		} else {
			stand.Must(t, db.Callback().Delete().Before(on).After("gormlock:before_write").Register("test:add", add))
		}
	}
	stand.Must(t, db.Exec("UPDATE accounts SET version = 2 WHERE id = ?", a.ID).Error)
	list := []stand.Account{a}
	for what, err := range map[string]error{
		"Update": db.Model(&a).Where("1=1").Update("balance", 5).Error, "Save": db.Save(&a).Error, "Delete": db.Delete(&a).Error,
		"slice": db.Model(&list).Update("balance", 5).Error, "slice, Delete": db.Delete(&list).Error,
	} {
		if !errors.Is(err, gormlock.ErrStale) {
			t.Error(what, err)
		}
	}
	stand.Must(t, db.Clauses(gormlock.IgnoreVersion()).Model(&a).Update("balance", 7).Error)
	var rows []stand.Account
	stand.Must(t, db.Order("id").Find(&rows).Error)
	if len(rows) != 2 {
		t.Fatal("rows", rows)
	}
	stand.Equal(t, "written", rows[0].Balance, 7)
	stand.Equal(t, "the other", rows[1], stand.Account{ID: rows[1].ID, Balance: 1, Version: 1})
}

// Conditions that close a parenthesis of gormlock are refused: behind it they would reach other rows.
func TestAnotherRowDoesNotAnswer_unbalanced(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{Balance: 1})
	for _, condition := range []string{"balance = 1) OR (balance = 1", "balance = 1) OR (1=1 /*(*/", "balance = 1) OR (note <> '('"} {
		if err := db.Model(&a).Where(condition).Update("balance", 5).Error; err == nil || !strings.Contains(err.Error(), "parenthesis") {
			t.Error(condition, err)
		}
	}
	for _, condition := range []string{"note <> ')'", "note <> E'\\')'", "note <> '(' -- )\n", "note <> $$)$$", `"note" <> ')'`, "(balance > 0)"} {
		stand.Must(t, db.Model(&a).Where(condition).Update("balance", 5).Error)
	}
	stand.Equal(t, "row", stand.Row[stand.Account](t, db, a.ID), a)
	if _, err := gorm.G[stand.Account](db).Where("balance = 5\tOR 1=1").Update(context.Background(), "balance", 6); err != nil {
		t.Error("a bulk statement is GORM's", err)
	}
}

// A key that several rows have is an error, and nothing stays of the write: a rule or a unique index of the table does not
// hold in the tables that inherit from it.
func TestAnotherRowDoesNotAnswer_inherited(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{Balance: 1})
	stand.Must(t, db.Exec("CREATE TABLE heirs () INHERITS (accounts); INSERT INTO heirs (id, balance, note, version) VALUES (1, 50, '', 1)").Error)
	before, list := a, []stand.Account{a}
	for what, write := range map[string]func() error{
		"Update": func() error { return db.Model(&a).Update("balance", 5).Error },
		"Save":   func() error { a.Balance = 5; defer func() { a.Balance = 1 }(); return db.Save(&a).Error },
		"Delete": func() error { return db.Delete(&a).Error },
		"slice":  func() error { return db.Model(&list).Update("balance", 5).Error },
		"in a transaction, dropped": func() error {
			return db.Transaction(func(tx *gorm.DB) error { tx.Model(&a).Update("balance", 5); return nil })
		},
	} {
		if err := write(); err == nil || !strings.Contains(err.Error(), "2 rows were written for 1") {
			t.Error(what, err)
		}
		stand.Equal(t, what, a, before)
		stand.Equal(t, what, list[0], before)
		var sum int64
		stand.Must(t, db.Model(&stand.Account{}).Select("sum(balance * version)").Scan(&sum).Error)
		stand.Equal(t, what, sum, 51)
	}
}
