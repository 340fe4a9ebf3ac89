package invariants

import (
	"database/sql"
	"errors"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/invariants/internal/models"
)

// scope is the transaction around the statement.
type scope struct {
	name   string
	code   string // STATEMENT stands for the statement
	inside bool   // a transaction is open
	undone bool   // what the statement wrote is rolled back
	again  bool   // the statement is run a second time
	run    func(c *cell, db *gorm.DB, statement func(tx *gorm.DB) error) error

	hidden bool // nobody sees its end: the struct may be left unread
	ours   bool // it is gormlock.Transaction, which sees its own end on every pool
	serial bool // a row that changed since it was read cannot be written, whatever is asked

	readInside bool
	only       func(s *shape) bool
	config     func(name string) bool
}

var errUndo = errors.New("the caller rolls back")

// errAgain is what a retry can cure.
var errAgain = &gormlock.StaleError{Table: "elsewhere"}

func hasHooks(s *shape) bool { return s.hooks() }

var scopes = []scope{
	{name: "implicit", code: "STATEMENT", run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error { return statement(db) }},
	{name: "implicit, hook fails", code: "STATEMENT // its AfterSave, AfterDelete returns an error", only: hasHooks, undone: true, run: hookFails,
		config: func(name string) bool { return name != "SkipDefaultTransaction" }},
	{name: "Transaction", code: "db.Transaction(func(tx *gorm.DB) error { return STATEMENT })", inside: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error { return db.Transaction(statement) }},
	{name: "Transaction, read inside", code: "db.Transaction(func(tx *gorm.DB) error { tx.First(&x); …; return STATEMENT })", inside: true, readInside: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error { return db.Transaction(statement) }},
	{name: "Transaction, error", code: "db.Transaction(func(tx *gorm.DB) error { STATEMENT; return errUndo })", inside: true, undone: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			return db.Transaction(func(tx *gorm.DB) error { _ = statement(tx); return errUndo })
		}},
	{name: "Transaction, panic", code: "db.Transaction(func(tx *gorm.DB) error { STATEMENT; panic(errUndo) })", inside: true, undone: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) (err error) {
			defer func() { err, _ = recover().(error) }()
			return db.Transaction(func(tx *gorm.DB) error { _ = statement(tx); panic(errUndo) })
		}},
	{name: "Begin and Commit, error dropped", code: "tx := db.Begin(); STATEMENT; tx.Commit()", inside: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			tx := db.Begin()
			_ = statement(tx)
			return tx.Commit().Error
		}},
	{name: "Begin and Rollback", code: "tx := db.Begin(); STATEMENT; tx.Rollback()", inside: true, undone: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			tx := db.Begin()
			_ = statement(tx)
			return tx.Rollback().Error
		}},
	{name: "Commit fails", code: "tx := db.Begin(); STATEMENT; tx.Commit() // fails, by a deferred constraint", inside: true, undone: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			tx := db.Begin()
			if err := past(tx, "SET LOCAL oracle.no_commit = 'on'"); err != nil {
				return errors.Join(err, tx.Rollback().Error)
			}
			_ = statement(tx)
			return tx.Commit().Error
		}},
	{name: "savepoint", code: "db.Transaction(func(tx *gorm.DB) error { return tx.Transaction(func(tx *gorm.DB) error { return STATEMENT }) })", inside: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Transaction(statement) })
		}},
	{name: "savepoint, error", code: "db.Transaction(func(tx *gorm.DB) error { tx.Transaction(func(tx *gorm.DB) error { STATEMENT; return errUndo }); return nil })", inside: true, undone: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			return db.Transaction(func(tx *gorm.DB) error {
				_ = tx.Transaction(func(tx *gorm.DB) error { _ = statement(tx); return errUndo })
				return nil
			})
		}},
	savepoint("SavePoint", `tx.SavePoint("a")`, `tx.RollbackTo("a")`,
		func(tx *gorm.DB) error { return tx.SavePoint("a").Error }, func(tx *gorm.DB) error { return tx.RollbackTo("a").Error }),
	savepoint("raw savepoint", `tx.Exec("SAVEPOINT a")`, `tx.Exec("ROLLBACK TO SAVEPOINT a")`, exec("SAVEPOINT a"), exec("ROLLBACK TO SAVEPOINT a")),
	savepoint("savepoint, comment after", `tx.Exec("SAVEPOINT a /* x */")`, `tx.Exec("ROLLBACK TO a /* x */")`, exec("SAVEPOINT a /* x */"), exec("ROLLBACK TO a /* x */")),
	savepoint("savepoint, comment before", `tx.Exec("/* x */ savepoint a")`, `tx.Exec("-- x\nrollback work to savepoint a")`, exec("/* x */ savepoint a"), exec("-- x\nrollback work to savepoint a")),
	savepoint("savepoint by Scan", `tx.Raw("SAVEPOINT a").Scan(&n)`, `tx.Raw("ROLLBACK TO a").Scan(&n)`, scan("SAVEPOINT a"), scan("ROLLBACK TO a")),
	{name: "ROLLBACK AND CHAIN", code: `tx := db.Begin(); STATEMENT; tx.Exec("ROLLBACK AND CHAIN"); tx.Commit()`, inside: true, undone: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			tx := db.Begin()
			_ = statement(tx)
			err := tx.Exec("ROLLBACK AND CHAIN").Error
			return errors.Join(err, tx.Commit().Error)
		}},
	{name: "gormlock.Transaction", ours: true, code: "gormlock.Transaction(db, func(tx *gorm.DB) error { return STATEMENT })", inside: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			return gormlock.Transaction(db, statement)
		}},
	{name: "gormlock.Transaction, error dropped", ours: true, code: "gormlock.Transaction(db, func(tx *gorm.DB) error { STATEMENT; return nil })", inside: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			return gormlock.Transaction(db, func(tx *gorm.DB) error { _ = statement(tx); return nil })
		}},
	{name: "gormlock.Transaction, error", ours: true, code: "gormlock.Transaction(db, func(tx *gorm.DB) error { STATEMENT; return errUndo })", inside: true, undone: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			return gormlock.Transaction(db, func(tx *gorm.DB) error { _ = statement(tx); return errUndo })
		}},
	{name: "gormlock.Transaction, second attempt", ours: true, code: "gormlock.Transaction(db, func(tx *gorm.DB) error { err := STATEMENT; if first { return aConflict }; return err }, gormlock.Attempts(2))", inside: true, again: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			first := true
			return gormlock.Transaction(db, func(tx *gorm.DB) error {
				err := statement(tx)
				if err == nil && first {
					first = false
					return errAgain
				}
				return err
			}, gormlock.Attempts(2))
		}},
	{name: "repeatable read, read inside", ours: true, serial: true, code: "gormlock.Transaction(db, func(tx *gorm.DB) error { tx.First(&x); …; return STATEMENT }, gormlock.Isolation(sql.LevelRepeatableRead))", inside: true, readInside: true,
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			return gormlock.Transaction(db, statement, gormlock.Isolation(sql.LevelRepeatableRead))
		}},
	{name: "Connection", hidden: true, code: "db.Connection(func(tx *gorm.DB) error { return tx.Transaction(func(tx *gorm.DB) error { STATEMENT; return errUndo }) })", inside: true, undone: true,
		config: func(name string) bool { return !strings.HasSuffix(name, "wrapped pool") },
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			return db.Connection(func(tx *gorm.DB) error {
				return tx.Transaction(func(tx *gorm.DB) error { _ = statement(tx); return errUndo })
			})
		}},
}

// hookFails lets the statement's After hook return an error; where no hook runs, nothing is undone.
func hookFails(c *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
	ran := false
	err := statement(db.WithContext(models.WithFailingHook(c.ctx, &ran)))
	if ran && !errors.Is(err, models.ErrHook) && err == nil {
		c.report("hook", "the error of a hook was dropped")
	}
	return err
}

// savepoint is a scope that rolls back to a savepoint made by hand.
func savepoint(name, set, back string, mark, undo func(tx *gorm.DB) error) scope {
	return scope{name: name, inside: true, undone: true, code: "db.Transaction(func(tx *gorm.DB) error { " + set + "; STATEMENT; " + back + "; return nil })",
		run: func(_ *cell, db *gorm.DB, statement func(*gorm.DB) error) error {
			return db.Transaction(func(tx *gorm.DB) error {
				if err := mark(tx); err != nil {
					return err
				}
				_ = statement(tx)
				return undo(tx)
			})
		}}
}

func exec(text string) func(*gorm.DB) error {
	return func(tx *gorm.DB) error { return tx.Exec(text).Error }
}

func scan(text string) func(*gorm.DB) error {
	return func(tx *gorm.DB) error {
		var n int
		return tx.Raw(text).Scan(&n).Error
	}
}

// past runs SQL in the transaction without GORM's callbacks.
func past(tx *gorm.DB, text string) error {
	_, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, text)
	return err
}
