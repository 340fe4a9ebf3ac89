package transactions_test

import (
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// V1: a panic while memory is put back leaves no step undone and keeps no connection.
func TestV1_PanicInUndo(t *testing.T) {
	t.Parallel()
	p := gormlock.New()
	t.Cleanup(func() { _ = p.Close() })
	db := pgtest.Open(t, pgtest.Plugin(p))
	for name, run := range map[string]func(body func(tx *gorm.DB) error) error{
		"rollback": func(body func(tx *gorm.DB) error) error { return db.Transaction(body) },
		"savepoint": func(body func(tx *gorm.DB) error) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Transaction(body) })
		},
		"a commit that is refused": func(body func(tx *gorm.DB) error) error {
			return db.Transaction(func(tx *gorm.DB) error {
				journal.Of(tx.Statement).Doom(errUndo)
				_ = body(tx)
				return nil
			})
		},
		"Transaction": func(body func(tx *gorm.DB) error) error { return gormlock.Transaction(db, body) },
	} {
		t.Run(name, func(t *testing.T) {
			var undone []string
			func() {
				defer func() {
					if err, _ := recover().(error); !errors.Is(err, io.EOF) {
						t.Error(err)
					}
				}()
				_ = run(func(tx *gorm.DB) error {
					note(t, tx, &undone, "first")
					journal.Of(tx.Statement).Record(func() { panic(io.EOF) })
					note(t, tx, &undone, "last")
					return errUndo
				})
			}()
			wantUndone(t, undone, "last", "first")
			if pool, err := db.DB(); err != nil || pool.Stats().InUse != 0 {
				t.Fatal(pool.Stats(), err)
			}
			if err := db.Exec("select 1").Error; err != nil {
				t.Fatal(err)
			}
		})
	}
}

type pennant struct {
	ID     int64
	MastID int64
	YardID int64
}

type mast struct {
	ID       int64
	Pennants []pennant
	Version  int64 `gormlock:"version"`
}

type yard struct {
	ID       int64
	Pennants []pennant
}

// TestNeedsJournal_whileGormParses: GORM puts relations into the schemas of models that are in use, when it meets another
// that leads to them.
func TestNeedsJournal_whileGormParses(t *testing.T) {
	t.Parallel()
	for range 50 {
		db, err := gorm.Open(sqlite.Open(":memory:"), &gorm.Config{Logger: logger.Discard})
		if err != nil {
			t.Fatal(err)
		}
		child := &gorm.Statement{DB: db}
		if err := child.Parse(&pennant{}); err != nil {
			t.Fatal(err)
		}
		var parsing sync.WaitGroup
		var failed error
		parsing.Go(func() {
			failed = errors.Join((&gorm.Statement{DB: db}).Parse(&mast{}), (&gorm.Statement{DB: db}).Parse(&yard{}))
		})
		for range 50 {
			if model.ReachesJournal(db, child.Schema, map[*schema.Schema]bool{}) {
				t.Fatal("a model was taken for one that leads to it")
			}
		}
		parsing.Wait()
		if pool, err := db.DB(); err != nil || pool.Close() != nil {
			t.Fatal(err)
		}
		if failed != nil {
			t.Fatal(failed)
		}
	}
}
