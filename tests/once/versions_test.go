package once_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// accountBox holds rows in each way that a result can.
type accountBox struct {
	stand.Account
	At   *stand.Account
	List []stand.Account
	Held stand.Account
}

// accountForm is no model, and an update takes its version for that of one.
type accountForm struct {
	ID, Balance, Version int64
}

// option holds a value where the library sees it only if it looks at fields that are not exported, as generic Option and Result types do.
type option[T any] struct{ value T }

func (o option[T]) MarshalJSON() ([]byte, error)     { return json.Marshal(o.value) }
func (o *option[T]) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &o.value) }

// anyAccount holds a struct in an interface, and so does each entry of anyAccounts.
type anyAccount struct{ Item any }

func (o *anyAccount) UnmarshalJSON(text []byte) error {
	var read struct{ Item stand.Account }
	err := json.Unmarshal(text, &read)
	o.Item = read.Item
	return err
}

type anyAccounts map[string]any

func (o *anyAccounts) UnmarshalJSON(text []byte) error {
	var read map[string][1]stand.Account
	err := json.Unmarshal(text, &read)
	*o = anyAccounts{"a": read["a"]}
	return err
}

// resultOf runs Once with a function that moves the row and returns it in a shape, and returns what is in the result.
type resultOf func(tx *gorm.DB, id int64, work func(tx *gorm.DB, a *stand.Account) error) (held func() any, err error)

// made is the resultOf a shape.
func made[T any](shape func(stand.Account) T, in func(T) any) resultOf {
	return func(tx *gorm.DB, id int64, work func(tx *gorm.DB, a *stand.Account) error) (func() any, error) {
		result, err := gormlock.Once(tx, "move", func(tx *gorm.DB) (T, error) {
			a := stand.Account{ID: id}
			err := work(tx, &a)
			return shape(a), err
		})
		return func() any { return in(result) }, err
	}
}

// shared are the results whose rows the library can still reach when the caller has them.
var shared = map[string]resultOf{
	"pointer":         made(func(a stand.Account) *stand.Account { return &a }, func(r *stand.Account) any { return r }),
	"slice":           made(func(a stand.Account) []stand.Account { return []stand.Account{{}, a} }, func(r []stand.Account) any { return &r[1] }),
	"slice of slices": made(func(a stand.Account) [][]stand.Account { return [][]stand.Account{{a}} }, func(r [][]stand.Account) any { return &r[0][0] }),
	"pointers":        made(func(a stand.Account) []*stand.Account { return []*stand.Account{nil, &a} }, func(r []*stand.Account) any { return r[1] }),
	"map":             made(func(a stand.Account) map[string]stand.Account { return map[string]stand.Account{"a": a} }, func(r map[string]stand.Account) any { a := r["a"]; return &a }),
	"map of pointers": made(func(a stand.Account) map[string]*stand.Account { return map[string]*stand.Account{"a": &a} }, func(r map[string]*stand.Account) any { return r["a"] }),
	"map of slices":   made(func(a stand.Account) map[int][]stand.Account { return map[int][]stand.Account{1: {a}} }, func(r map[int][]stand.Account) any { return &r[1][0] }),
	"map of arrays":   made(func(a stand.Account) map[int][1]stand.Account { return map[int][1]stand.Account{1: {a}} }, func(r map[int][1]stand.Account) any { a := r[1]; return &a[0] }),
	"pointer in box":  made(func(a stand.Account) accountBox { return accountBox{At: &a} }, func(r accountBox) any { return r.At }),
	"slice in box":    made(func(a stand.Account) accountBox { return accountBox{List: []stand.Account{a}} }, func(r accountBox) any { return &r.List[0] }),
	"form in a map":   made(func(a stand.Account) map[int]accountForm { return map[int]accountForm{1: {a.ID, 1, a.Version}} }, func(r map[int]accountForm) any { return r[1] }),
	"boxed":           made(func(a stand.Account) *accountBox { return &accountBox{Held: a} }, func(r *accountBox) any { return &r.Held }),
	"embedded":        made(func(a stand.Account) *accountBox { return &accountBox{Account: a} }, func(r *accountBox) any { return &r.Account }),
	"form":            made(func(a stand.Account) *accountForm { return &accountForm{a.ID, 1, a.Version} }, func(r *accountForm) any { return *r }),
	"map to values":   made(func(a stand.Account) map[string]any { return map[string]any{"balance": 1, "version": a.Version} }, func(r map[string]any) any { return r }),
	"anything":        made(func(a stand.Account) any { return map[string]any{"Balance": 1, "Version": a.Version} }, func(r any) any { return r }),
	"option":          made(func(a stand.Account) option[*stand.Account] { return option[*stand.Account]{&a} }, func(r option[*stand.Account]) any { return r.value }),
	"option of a list": made(func(a stand.Account) *option[option[[]stand.Account]] {
		return &option[option[[]stand.Account]]{option[[]stand.Account]{[]stand.Account{a}}}
	}, func(r *option[option[[]stand.Account]]) any { return &r.value.value[0] }),
	"option of a map": made(func(a stand.Account) option[map[string]any] {
		return option[map[string]any]{map[string]any{"balance": 1, "version": a.Version}}
	}, func(r option[map[string]any]) any { return r.value }),
	"option of a form": made(func(a stand.Account) *option[accountForm] {
		return &option[accountForm]{accountForm{a.ID, 1, a.Version}}
	}, func(r *option[accountForm]) any { return r.value }),
	"interface":        made(func(a stand.Account) *anyAccount { return &anyAccount{a} }, func(r *anyAccount) any { a := r.Item.(stand.Account); return &a }),
	"interfaces":       made(func(a stand.Account) anyAccounts { return anyAccounts{"a": [1]stand.Account{a}} }, func(r anyAccounts) any { a := r["a"].([1]stand.Account); return &a[0] }),
	"struct of no tag": made(func(a stand.Account) *struct{ A stand.Account } { return &struct{ A stand.Account }{a} }, func(r *struct{ A stand.Account }) any { return &r.A }),
}

// copied are those of which the caller has copies.
var copied = map[string]resultOf{
	"struct":         made(func(a stand.Account) stand.Account { return a }, func(r stand.Account) any { return &r }),
	"array":          made(func(a stand.Account) [1]stand.Account { return [1]stand.Account{a} }, func(r [1]stand.Account) any { return &r[0] }),
	"field of box":   made(func(a stand.Account) accountBox { return accountBox{Held: a} }, func(r accountBox) any { return &r.Held }),
	"embedded":       made(func(a stand.Account) accountBox { return accountBox{Account: a} }, func(r accountBox) any { return &r.Account }),
	"option":         made(func(a stand.Account) option[stand.Account] { return option[stand.Account]{a} }, func(r option[stand.Account]) any { return &r.value }),
	"interface":      made(func(a stand.Account) anyAccount { return anyAccount{a} }, func(r anyAccount) any { a := r.Item.(stand.Account); return &a }),
	"struct in both": made(func(a stand.Account) accountBox { return accountBox{Account: a, Held: a} }, func(r accountBox) any { return &r.Held }),
}

// works are what the function of a Once may do to the row that it returns.
var works = map[string]func(tx *gorm.DB, a *stand.Account) error{
	"saved": func(tx *gorm.DB, a *stand.Account) error {
		return errors.Join(tx.First(a).Error, tx.Model(a).Update("balance", 5).Error)
	},
	"by hand": func(tx *gorm.DB, a *stand.Account) error { return errors.Join(tx.Exec(moves).Error, tx.First(a).Error) },
	"in bulk": func(tx *gorm.DB, a *stand.Account) error {
		return errors.Join(tx.Table("accounts").Where("true").Updates(map[string]any{"version": 2}).Error, tx.First(a).Error)
	},
}

const moves = "UPDATE accounts SET balance = 5, version = version + 1"

// write writes what a result holds as the program would.
func write(db *gorm.DB, id int64, held any) error {
	if a, is := held.(*stand.Account); is {
		a.Balance = 1
		return db.Save(a).Error
	}
	return db.Model(&stand.Account{ID: id}).Updates(held).Error
}

var errBack = errors.New("back")

// rollbacks are ways to take the work of a function back.
var rollbacks = map[string]func(db *gorm.DB, work func(tx *gorm.DB) error) error{
	"db.Transaction":       func(db *gorm.DB, work func(tx *gorm.DB) error) error { return db.Transaction(work) },
	"gormlock.Transaction": func(db *gorm.DB, work func(tx *gorm.DB) error) error { return gormlock.Transaction(db, work) },
	"Begin": func(db *gorm.DB, work func(tx *gorm.DB) error) error {
		tx := db.Begin()
		return errors.Join(work(tx), tx.Rollback().Error)
	},
	"nested": func(db *gorm.DB, work func(tx *gorm.DB) error) (err error) {
		return errors.Join(db.Transaction(func(tx *gorm.DB) error { err = tx.Transaction(work); return nil }), err)
	},
	"Once that fails": func(db *gorm.DB, work func(tx *gorm.DB) error) (err error) {
		return errors.Join(db.Transaction(func(tx *gorm.DB) error {
			_, err = gormlock.Once(tx, "outer", func(tx *gorm.DB) (int, error) { return 0, work(tx) })
			return nil
		}), err)
	},
	"savepoint by text": func(db *gorm.DB, work func(tx *gorm.DB) error) (err error) {
		return errors.Join(db.Transaction(func(tx *gorm.DB) error {
			tx.Exec("SAVEPOINT a")
			err = work(tx)
			return tx.Exec("ROLLBACK TO a").Error
		}), err)
	},
	"ROLLBACK in a text": func(db *gorm.DB, work func(tx *gorm.DB) error) (err error) {
		_ = db.Transaction(func(tx *gorm.DB) error { err = work(tx); return tx.Exec("ROLLBACK").Error })
		return err
	},
	"commit of an aborted transaction": func(db *gorm.DB, work func(tx *gorm.DB) error) (err error) {
		_ = db.Transaction(func(tx *gorm.DB) error { err = work(tx); tx.Exec("bad"); return nil })
		return err
	},
	"db.Connection": func(db *gorm.DB, work func(tx *gorm.DB) error) error {
		return db.Connection(func(c *gorm.DB) error { return c.Transaction(work) })
	},
	"gormlock.Transaction on db.Connection": func(db *gorm.DB, work func(tx *gorm.DB) error) error {
		return db.Connection(func(c *gorm.DB) error { return gormlock.Transaction(c, work) })
	},
}

// What Once returned in a transaction that is rolled back writes over nobody.
func TestOnce_resultOfARollback(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		db := stand.Versioned(t, []any{&stand.Account{}}, opts...)
		stand.Must(t, gormlock.MigrateOnce(db))
		for kind, shapes := range map[string]map[string]resultOf{"shared": shared, "copied": copied} {
			for shape, once := range shapes {
				for how, work := range works {
					for end, rollback := range rollbacks {
						for _, again := range []bool{false, true} {
							if how != "saved" && (again || end != "db.Transaction") {
								continue
							}
							name := fmt.Sprintf("%s %s, %s, %s, again %v", kind, shape, how, end, again)
							stand.MustDo(t, db.Exec("TRUNCATE accounts, gormlock_once"))
							a := stand.Made(t, db, stand.Account{})
							var held func() any
							err := rollback(db, func(tx *gorm.DB) (err error) {
								if again {
									_, err = once(tx, a.ID, work)
									stand.Must(t, err)
								}
								held, err = once(tx, a.ID, work)
								stand.Must(t, err)
								return errBack
							})
							if !errors.Is(err, errBack) {
								t.Fatalf("%s: %v", name, err)
							}
							for range 2 {
								stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 77, version = version + 1"))
								err := write(db, a.ID, held())
								if !errors.Is(err, gormlock.ErrVersionMissing) && !errors.Is(err, gormlock.ErrStale) {
									t.Errorf("%s: %+v was written over a rival's row: %v", name, held(), err)
								}
							}
						}
					}
				}
			}
		}
	})
}

// What it returned in a transaction that is committed is written on: a struct returned by value must be read first if the transaction
// has moved it.
func TestOnce_resultOfACommit(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.Must(t, gormlock.MigrateOnce(db))
	for kind, shapes := range map[string]map[string]resultOf{"shared": shared, "copied": copied} {
		for shape, once := range shapes {
			for how, work := range works {
				name := kind + " " + shape + ", " + how
				stand.MustDo(t, db.Exec("TRUNCATE accounts, gormlock_once"))
				a := stand.Made(t, db, stand.Account{})
				results := [3]func() any{}
				for i := range results {
					within := db.Transaction
					if i == 2 {
						within = func(fn func(tx *gorm.DB) error, _ ...*sql.TxOptions) error {
							return db.Connection(func(c *gorm.DB) error { return c.Transaction(fn) })
						}
					}
					stand.Must(t, within(func(tx *gorm.DB) (err error) {
						results[i], err = once(tx, a.ID, work)
						return err
					}))
				}
				for i, held := range results {
					stand.MustDo(t, db.Exec("UPDATE accounts SET version = 2"))
					switch err := write(db, a.ID, held()); {
					case i == 0 && kind == "copied":
						stand.MustBeUnread(t, err)
					case err != nil:
						t.Errorf("%s, call %d: %+v: %v", name, i+1, held(), err)
					}
				}
			}
		}
	}
}

// A function that only reads returns what others have committed, and no rollback makes that untrue.
func TestOnce_resultThatWasOnlyRead(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.Must(t, gormlock.MigrateOnce(db))
	for _, shapes := range []map[string]resultOf{shared, copied} {
		for shape, once := range shapes {
			stand.MustDo(t, db.Exec("TRUNCATE accounts, gormlock_once"))
			a := stand.Made(t, db, stand.Account{})
			var held func() any
			if err := db.Transaction(func(tx *gorm.DB) (err error) {
				held, err = once(tx, a.ID, func(tx *gorm.DB, a *stand.Account) error { return tx.First(a).Error })
				return errors.Join(err, errBack)
			}); !errors.Is(err, errBack) {
				t.Fatal(err)
			}
			if err := write(db, a.ID, held()); err != nil {
				t.Errorf("%s: %v", shape, err)
			}
		}
	}
}
