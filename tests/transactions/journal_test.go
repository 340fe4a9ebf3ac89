package transactions_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// bookmark has a gormlock tag on no column that versions use, so that its own transactions have a journal.
type bookmark struct {
	ID   int64
	Page int `gormlock:"-"`
}

var errUndo = errors.New("undo")

// note records an undo that appends name, as a versioned write would record how to put a struct back.
func note(t *testing.T, tx *gorm.DB, undone *[]string, name string) {
	t.Helper()
	j := journal.Of(tx.Statement)
	if j == nil {
		t.Fatalf("no journal in a transaction on %T", tx.Statement.ConnPool)
	}
	j.Record(func() { *undone = append(*undone, name) })
}

func wantUndone(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("undone %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("undone %q, want %q", got, want)
		}
	}
}

// undoneWith is what was undone in a transaction of body, which ends with the error want.
func undoneWith(t *testing.T, db *gorm.DB, want error, body func(tx *gorm.DB, undone *[]string) error) (undone []string) {
	t.Helper()
	if err := db.Transaction(func(tx *gorm.DB) error { return body(tx, &undone) }); !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
	return undone
}

// TestV1_JournalSeesEveryEnd runs every way to end a transaction, on every kind of pool.
func TestV1_JournalSeesEveryEnd(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]pgtest.Option{
		"cached":        nil,
		"simple":        {pgtest.SimpleProtocol()},
		"prepared":      {pgtest.PrepareStmt()},
		"one":           {pgtest.MaxConns(1)},
		"prepared, one": {pgtest.PrepareStmt(), pgtest.MaxConns(1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := gormlock.New()
			t.Cleanup(func() { _ = p.Close() })
			db := pgtest.Open(t, append(opts, pgtest.Plugin(p))...)
			sessions := map[string]*gorm.DB{"": db, "session prepared": db.Session(&gorm.Session{PrepareStmt: true})}
			for session, db := range sessions {
				t.Run(session, func(t *testing.T) { everyEnd(t, db) })
			}
		})
	}
}

func everyEnd(t *testing.T, db *gorm.DB) {
	work := func(tx *gorm.DB) error { return tx.Exec("SELECT 1").Error }

	t.Run("commit", func(t *testing.T) {
		wantUndone(t, undoneWith(t, db, nil, func(tx *gorm.DB, undone *[]string) error {
			note(t, tx, undone, "a")
			return work(tx)
		}))
	})
	t.Run("db.Transaction fails, newest first", func(t *testing.T) {
		wantUndone(t, undoneWith(t, db, errUndo, func(tx *gorm.DB, undone *[]string) error {
			note(t, tx, undone, "a")
			note(t, tx, undone, "b")
			return errors.Join(work(tx), errUndo)
		}), "b", "a")
	})
	t.Run("Begin and Rollback", func(t *testing.T) {
		var undone []string
		tx := db.Begin()
		note(t, tx, &undone, "a")
		tx.Rollback()
		wantUndone(t, undone, "a")
	})
	t.Run("a panic", func(t *testing.T) {
		var undone []string
		func() {
			defer func() { _ = recover() }()
			_ = gormlock.Transaction(db, func(tx *gorm.DB) error {
				note(t, tx, &undone, "a")
				panic("in the middle")
			})
		}()
		wantUndone(t, undone, "a")
	})
	t.Run("nested: only the inner is undone", func(t *testing.T) {
		var undone []string
		err := gormlock.Transaction(db, func(tx *gorm.DB) error {
			note(t, tx, &undone, "outer")
			_ = tx.Transaction(func(tx *gorm.DB) error {
				note(t, tx, &undone, "inner")
				return errUndo
			})
			wantUndone(t, undone, "inner")
			return tx.Transaction(func(tx *gorm.DB) error {
				note(t, tx, &undone, "kept")
				return work(tx)
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		wantUndone(t, undone, "inner")
	})
	t.Run("savepoints by hand", func(t *testing.T) {
		var undone []string
		tx := db.Begin()
		note(t, tx, &undone, "a")
		tx.SavePoint("Sp")
		note(t, tx, &undone, "b")
		tx.SavePoint("sp2")
		note(t, tx, &undone, "c")
		tx.RollbackTo("sp")
		wantUndone(t, undone, "c", "b")
		note(t, tx, &undone, "d")
		tx.RollbackTo("sp")
		wantUndone(t, undone, "c", "b", "d")
		if err := tx.Commit().Error; err != nil {
			t.Fatal(err)
		}
		wantUndone(t, undone, "c", "b", "d")
	})
	t.Run("ctx ended before the commit", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		wantUndone(t, undoneWith(t, db.WithContext(ctx), context.Canceled, func(tx *gorm.DB, undone *[]string) error {
			note(t, tx, undone, "a")
			cancel()
			return nil
		}), "a")
	})
	t.Run("a doomed commit is a rollback", func(t *testing.T) {
		wantUndone(t, undoneWith(t, db, errUndo, func(tx *gorm.DB, undone *[]string) error {
			note(t, tx, undone, "a")
			journal.Of(tx.Statement).Doom(errUndo)
			return work(tx)
		}), "a")
	})
	t.Run("a doom inside a savepoint goes with it", func(t *testing.T) {
		wantUndone(t, undoneWith(t, db, nil, func(tx *gorm.DB, undone *[]string) error {
			note(t, tx, undone, "a")
			_ = tx.Transaction(func(tx *gorm.DB) error {
				journal.Of(tx.Statement).Doom(errUndo)
				return errUndo
			})
			return work(tx)
		}))
	})
	t.Run("a commit that fails", func(t *testing.T) {
		var undone []string
		err := db.Transaction(func(tx *gorm.DB) error {
			note(t, tx, &undone, "a")
			for _, statement := range []string{
				"CREATE TEMPORARY TABLE deferred (id int UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP",
				"INSERT INTO deferred VALUES (1), (1)",
			} {
				if err := tx.Exec(statement).Error; err != nil {
					return err
				}
			}
			return nil
		})
		if sqlstate.Of(err) != "23505" {
			t.Fatalf("commit with a violated deferred constraint: %v", err)
		}
		wantUndone(t, undone, "a")
	})
}

// TestV1_JournalInImplicitTransactions: a hook that fails rolls GORM's own transaction back.
func TestV1_JournalInImplicitTransactions(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	if err := db.AutoMigrate(&bookmark{}, &hooked{}); err != nil {
		t.Fatal(err)
	}
	var undone []string
	if err := db.Create(&hooked{t: t, undone: &undone, fails: true}).Error; !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	wantUndone(t, undone, "a")
	undone = nil
	if err := db.Create(&hooked{t: t, undone: &undone}).Error; err != nil {
		t.Fatal(err)
	}
	wantUndone(t, undone)
}

type hooked struct {
	ID     int64
	t      *testing.T
	undone *[]string
	fails  bool
}

func (h *hooked) AfterCreate(tx *gorm.DB) error {
	note(h.t, tx, h.undone, "a")
	if h.fails {
		return errUndo
	}
	return nil
}

// TestTransactionKeepsAJournalOfItsOwn on a connection that the pool does not see.
func TestTransactionKeepsAJournalOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, plugin := range map[string]*gormlock.Plugin{"db.Connection": gormlock.New(), "PlainTransactions": gormlock.New(gormlock.PlainTransactions())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := pgtest.Key(t)
			db := pgtest.Open(t, pgtest.Plugin(plugin))
			run := func(db *gorm.DB) error {
				var undone []string
				for _, fails := range []func(tx *gorm.DB) error{
					func(*gorm.DB) error { return errUndo },
					func(tx *gorm.DB) error { journal.Of(tx.Statement).Doom(errUndo); return nil },
				} {
					err := gormlock.Transaction(db, func(tx *gorm.DB) error {
						if !pgtest.Held(t, key) {
							t.Error("not held")
						}
						note(t, tx, &undone, "a")
						return fails(tx)
					}, gormlock.Locking(key))
					if !errors.Is(err, errUndo) {
						t.Error(err)
					}
					wantUndone(t, undone, "a")
					undone = nil
				}
				err := gormlock.Transaction(db, func(tx *gorm.DB) error {
					note(t, tx, &undone, "kept")
					for _, nested := range []func(*gorm.DB) error{
						func(tx *gorm.DB) error { note(t, tx, &undone, "failed"); return errUndo },
						func(tx *gorm.DB) error { note(t, tx, &undone, "panicked"); panic(errUndo) },
						func(tx *gorm.DB) error {
							note(t, tx, &undone, "doomed")
							journal.Of(tx.Statement).Doom(errUndo)
							return nil
						},
					} {
						func() {
							defer func() { _ = recover() }()
							if err := gormlock.Transaction(tx, nested); !errors.Is(err, errUndo) {
								t.Error(err)
							}
						}()
					}
					return gormlock.Transaction(tx, func(tx *gorm.DB) error { note(t, tx, &undone, "kept too"); return nil })
				})
				if err != nil {
					t.Error(err)
				}
				wantUndone(t, undone, "failed", "panicked", "doomed")
				return nil
			}
			if name == "db.Connection" {
				if err := db.Connection(run); err != nil {
					t.Fatal(err)
				}
				return
			}
			_ = run(db)
		})
	}
}
