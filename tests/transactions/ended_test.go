package transactions_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

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

// begunOn runs a function in a transaction that was begun in some way, and commits it, whatever the function's texts have done.
var begunOn = map[string]func(db *gorm.DB, fn func(tx *gorm.DB) error) error{
	"db.Transaction":       func(db *gorm.DB, fn func(tx *gorm.DB) error) error { return db.Transaction(fn) },
	"gormlock.Transaction": func(db *gorm.DB, fn func(tx *gorm.DB) error) error { return gormlock.Transaction(db, fn) },
	"Locking": func(db *gorm.DB, fn func(tx *gorm.DB) error) error {
		return gormlock.Transaction(db, fn, gormlock.Locking(gormlock.Key("ended", 1)))
	},
	"SERIALIZABLE": func(db *gorm.DB, fn func(tx *gorm.DB) error) error {
		return gormlock.Transaction(db, fn, gormlock.Isolation(sql.LevelSerializable))
	},
	"Begin": func(db *gorm.DB, fn func(tx *gorm.DB) error) error {
		tx := db.Begin()
		return errors.Join(fn(tx), tx.Commit().Error)
	},
	"a ctx": func(db *gorm.DB, fn func(tx *gorm.DB) error) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return db.WithContext(ctx).Transaction(fn)
	},
	"prepared session": func(db *gorm.DB, fn func(tx *gorm.DB) error) error {
		return db.Session(&gorm.Session{PrepareStmt: true}).Transaction(fn)
	},
	"connection": func(db *gorm.DB, fn func(tx *gorm.DB) error) error {
		return db.Connection(func(c *gorm.DB) error { return c.Transaction(fn) })
	},
	"Begin on a connection": func(db *gorm.DB, fn func(tx *gorm.DB) error) error {
		return db.Connection(func(c *gorm.DB) error {
			tx := c.Begin()
			return errors.Join(fn(tx), tx.Commit().Error)
		})
	},
	"gormlock.Transaction on a connection": func(db *gorm.DB, fn func(tx *gorm.DB) error) error {
		return db.Connection(func(c *gorm.DB) error { return gormlock.Transaction(c, fn) })
	},
	"SERIALIZABLE on a connection": func(db *gorm.DB, fn func(tx *gorm.DB) error) error {
		return db.Connection(func(c *gorm.DB) error {
			return gormlock.Transaction(c, fn, gormlock.Isolation(sql.LevelSerializable))
		})
	},
}

// rollingBack are the texts that roll a transaction back. None of their errors is looked at.
var rollingBack = map[string]func(tx *gorm.DB){
	"ROLLBACK":    func(tx *gorm.DB) { tx.Exec("ROLLBACK") },
	"commented":   func(tx *gorm.DB) { tx.Exec("/* x */ rollback -- y") },
	"ABORT":       func(tx *gorm.DB) { tx.Exec("ABORT WORK") },
	"Scan":        func(tx *gorm.DB) { var none []string; tx.Raw("ROLLBACK").Scan(&none) },
	"Find":        func(tx *gorm.DB) { var none []ender; tx.Raw("ROLLBACK").Find(&none) },
	"Row":         func(tx *gorm.DB) { var n int; _ = tx.Raw("ROLLBACK").Row().Scan(&n) },
	"gorm.G":      func(tx *gorm.DB) { _ = gorm.G[ender](tx).Exec(context.Background(), "ROLLBACK") },
	"two texts":   func(tx *gorm.DB) { tx.Exec("SELECT 1; ROLLBACK") },
	"that fails":  func(tx *gorm.DB) { tx.Exec("ROLLBACK; SELECT 1/0") },
	"that begins": func(tx *gorm.DB) { tx.Exec("ROLLBACK; BEGIN; SELECT 1/0") },
	"and more": func(tx *gorm.DB) {
		tx.Exec("ROLLBACK")
		tx.Exec("SELECT 1")
	},
	"hook": func(tx *gorm.DB) {
		tx.Create(&ender{Ends: "ROLLBACK"})
	},
	"COMMIT of an aborted one": func(tx *gorm.DB) {
		tx.Exec("bad")
		tx.Exec("COMMIT")
	},
	"END of an aborted one": func(tx *gorm.DB) {
		tx.Exec("SELECT 1/0")
		var none []string
		tx.Raw("END").Scan(&none)
	},
	"PREPARE TRANSACTION of an aborted one": func(tx *gorm.DB) {
		tx.Exec("bad")
		tx.Exec("PREPARE TRANSACTION 'ended'")
	},
}

// However a transaction was begun and a text has rolled it back, its commit is an error if nothing was stored.
func TestCommit_whateverRolledBack(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		for _, plain := range [][]gormlock.Option{nil, {gormlock.PlainTransactions()}} {
			plugin := gormlock.New(plain...)
			t.Cleanup(func() { _ = plugin.Close() })
			db := pgtest.Open(t, append([]pgtest.Option{pgtest.Schema(), pgtest.Plugin(plugin)}, opts...)...)
			stand.Must(t, db.AutoMigrate(&ender{}))
			for begun, within := range begunOn {
				for text, rollBack := range rollingBack {
					e := stand.Made(t, db, ender{})
					err := within(db, func(tx *gorm.DB) error {
						stand.MustDo(t, tx.Model(&e).Update("n", 1))
						rollBack(tx)
						return nil
					})
					if stored := stand.Row[ender](t, db, e.ID).N == 1; stored == (err != nil) {
						t.Errorf("%s, %s: stored %v, and the error is %v", begun, text, stored, err)
					}
				}
			}
		}
	})
}

// The transaction of a statement alone, and a transaction that a text commits, where gormlock is told of no end.
func TestCommit_onAConnection(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		db := stand.Versioned(t, []any{&ender{}}, opts...)
		e := stand.Made(t, db, ender{})
		stand.Must(t, db.Connection(func(c *gorm.DB) error {
			c = c.Session(&gorm.Session{NewDB: true})
			for what, save := range map[string]func() error{
				"Save":     func() error { return c.Save(&e).Error },
				"slice":    func() error { return c.Save([]*ender{&e}).Error },
				"one made": func() error { return c.Create(&ender{Ends: e.Ends}).Error },
				"without GORM's": func() error {
					return c.Session(&gorm.Session{SkipDefaultTransaction: true}).Save([]*ender{&e}).Error
				},
			} {
				e.N, e.Ends = 1, "ROLLBACK"
				if err := save(); err == nil {
					t.Errorf("%s: no error", what)
				}
				stand.Equal(t, what+", stored", stand.Row[ender](t, db, e.ID).N, 0)
				stand.Equal(t, what+", version", e.Version, stand.Row[ender](t, db, e.ID).Version)
			}
			e.Ends = ""
			for begun, within := range map[string]func(func(tx *gorm.DB) error) error{
				"c.Transaction":        func(fn func(tx *gorm.DB) error) error { return c.Transaction(fn) },
				"gormlock.Transaction": func(fn func(tx *gorm.DB) error) error { return gormlock.Transaction(c, fn) },
			} {
				for _, text := range []string{"COMMIT", "ROLLBACK AND CHAIN", "COMMIT AND CHAIN", "SAVEPOINT a"} {
					made := stand.Made(t, db, ender{})
					if err := within(func(tx *gorm.DB) error {
						stand.MustDo(t, tx.Exec(text))
						return tx.Model(&ender{}).Where("id = ?", made.ID).Update("n", 2).Error
					}); err != nil {
						t.Errorf("%s, %s: %v", begun, text, err)
					}
					stand.Equal(t, begun+", "+text, stand.Row[ender](t, db, made.ID).N, 2)
				}
			}
			return gormlock.Transaction(c, func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Model(&e).Update("n", 1))
				stand.MustDo(t, tx.Exec("ROLLBACK"))
				stand.MustDo(t, tx.Exec("BEGIN"))
				return nil
			})
		}))
	})
}
