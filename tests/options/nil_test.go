// Package options tests what is the same of all options, whatever they change.
package options_test

import (
	"context"
	"database/sql"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe/otelobserve"
	"github.com/gormlock/gormlock/pgxlock"
	"github.com/gormlock/gormlock/sessionlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
	"github.com/gormlock/gormlock/work"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Task is a job.
type Task struct{ work.Job }

// openAll opens what functions are called on: a database with an account, its pool, and managers of leases and session locks.
func openAll(t *testing.T) (*gorm.DB, *sql.DB, *lease.Manager, *sessionlock.Manager) {
	t.Helper()
	db, _ := stand.Stored(t, stand.Account{ID: 1})
	stand.Must(t, gormlock.MigrateOnce(db))
	pool, err := db.DB()
	stand.Must(t, err)
	stand.Must(t, lease.Migrate(t.Context(), pool))
	leases, err := lease.New(t.Context(), pool)
	stand.Must(t, err)
	t.Cleanup(func() { _ = leases.Close(context.Background()) })
	locks, err := sessionlock.Open(t.Context(), pgtest.SchemaDSN(t))
	stand.Must(t, err)
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	return db, pool, leases, locks
}

// A nil among options is an error, and nothing was done. The census finds each function that takes options, so that a new one
// gets its line here.
func TestNilOption(t *testing.T) {
	t.Parallel()
	db, pool, leases, locks := openAll(t)
	key, ctx := pgtest.Key(t, "nil"), t.Context()
	in := func(call func(tx *gorm.DB) error) func() error { return func() error { return db.Transaction(call) } }
	do := func(context.Context) error { t.Error("it ran"); return nil }
	mock := func(call func(t testing.TB, mock sqlmock.Sqlmock)) func() error {
		return func() error {
			mocked, m, err := sqlmock.New()
			stand.Must(t, err)
			m.ExpectClose()
			defer func() { _ = mocked.Close() }()
			return fatal(t, func(t testing.TB) { call(t, m) })
		}
	}
	keys := []lockkey.Key{key}

	calls := map[string]func() error{
		"gormlock.New":      func() error { return gormlock.New(nil).Initialize(db) },
		"gormlock.LockRow":  in(func(tx *gorm.DB) error { return gormlock.LockRow(tx, &stand.Account{ID: 1}, nil) }),
		"gormlock.LockRows": in(func(tx *gorm.DB) error { return gormlock.LockRows(tx, &[]stand.Account{{ID: 1}}, nil) }),
		"gormlock.Locking": func() error {
			return gormlock.Transaction(db, func(*gorm.DB) error { t.Error("it ran"); return nil }, gormlock.Locking(key, nil))
		},
		"gormlock.Transaction": func() error {
			return gormlock.Transaction(db, func(*gorm.DB) error { t.Error("it ran"); return nil }, nil)
		},
		"gormlock.FenceFor": in(func(tx *gorm.DB) error { return stand.ErrorOf(gormlock.FenceFor(tx, key, gormlock.WaitOption{})) }),
		"gormlock.Once": in(func(tx *gorm.DB) error {
			return stand.ErrorOf(gormlock.Once(tx, "k", func(*gorm.DB) (int, error) { t.Error("it ran"); return 1, nil }, nil))
		}),
		"gormlock.WithRowLock": in(func(tx *gorm.DB) error {
			return tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, nil)).First(&stand.Account{}).Error
		}),
		"gormlock.RowLock": in(func(tx *gorm.DB) error {
			return tx.Clauses(gormlock.RowLock(gormlock.ForUpdate, nil)).First(&stand.Account{}).Error
		}),
		"gormlock.WithSkipLocked": in(func(tx *gorm.DB) error { return tx.Scopes(gormlock.WithSkipLocked(nil)).First(&stand.Account{}).Error }),
		"gormlock.SkipLocked":     in(func(tx *gorm.DB) error { return tx.Clauses(gormlock.SkipLocked(nil)).First(&stand.Account{}).Error }),
		"gormlock.WithXactLock": in(func(tx *gorm.DB) error {
			return tx.Scopes(gormlock.WithXactLock(key, nil)).First(&stand.Account{}).Error
		}),
		"gormlock.XactLock":        in(func(tx *gorm.DB) error { return tx.Clauses(gormlock.XactLock(key, nil)).First(&stand.Account{}).Error }),
		"gormlock.AcquireXactLock": in(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, keys, nil) }),
		"gormlock.Claim": func() error {
			return stand.ErrorOf(gormlock.Claim[stand.Account](db, 1, map[string]any{"balance": 9}, nil))
		},
		"advisory.Acquire": in(func(tx *gorm.DB) error { return advisory.Acquire(ctx, tx.Statement.ConnPool.(*sql.Tx), keys, nil) }),
		"advisory.SessionLocker": func() error {
			conn, err := pool.Conn(ctx)
			stand.Must(t, err)
			defer func() { _ = conn.Close() }()
			return advisory.SessionLocker(key, nil).SessionLock(ctx, conn)
		},
		"pgxlock.Acquire": in(func(tx *gorm.DB) error {
			inner, err := pgtest.PgxTx(tx)
			stand.Must(t, err)
			return pgxlock.Acquire(ctx, inner, keys, nil)
		}),
		"pgxlock.Transaction": func() error {
			return pgxlock.Transaction(ctx, pgtest.Conn(t), func(pgx.Tx) error { t.Error("it ran"); return nil }, nil)
		},
		"pgxlock.Locking": func() error {
			return pgxlock.Transaction(ctx, pgtest.Conn(t), func(pgx.Tx) error { t.Error("it ran"); return nil }, pgxlock.Locking(key, nil))
		},

		"sessionlock.Open":               func() error { return stand.ErrorOf(sessionlock.Open(ctx, pgtest.DSN(t), nil)) },
		"sessionlock.OpenConfig":         func() error { return stand.ErrorOf(sessionlock.OpenConfig(ctx, nil, nil)) },
		"sessionlock.Manager.Acquire":    func() error { return stand.ErrorOf(locks.Acquire(ctx, key, nil)) },
		"sessionlock.Manager.TryAcquire": func() error { return stand.ErrorOf(locks.TryAcquire(ctx, key, nil)) },
		"sessionlock.Manager.Do":         func() error { return locks.Do(ctx, key, do, nil) },

		"lease.New":                func() error { return stand.ErrorOf(lease.New(ctx, pool, nil)) },
		"lease.Migrate":            func() error { return lease.Migrate(ctx, pool, nil) },
		"lease.Manager.Acquire":    func() error { return stand.ErrorOf(leases.Acquire(ctx, key, time.Minute, nil)) },
		"lease.Manager.TryAcquire": func() error { return stand.ErrorOf(leases.TryAcquire(ctx, key, time.Minute, nil)) },
		"lease.Manager.Do":         func() error { return leases.Do(ctx, key, time.Minute, do, nil) },
		"lease.Manager.Lead":       func() error { return leases.Lead(ctx, key, time.Minute, do, nil) },
		"lease.Manager.Every": func() error {
			return leases.Every(ctx, key, lease.Interval(time.Hour), func(context.Context, time.Time) error { t.Error("it ran"); return nil }, nil)
		},

		"work.Migrate": func() error { return work.Migrate(db, &Task{}, nil) },
		"work.New": func() error {
			return stand.ErrorOf(work.New(db, func(context.Context, *Task) error { return nil }, nil))
		},

		"inspect.Snapshot": func() error { return stand.ErrorOf(inspect.Snapshot(ctx, pool, nil)) },
		"inspect.Handler": func() error {
			page, answer := inspect.Handler(pool, nil), httptest.NewRecorder()
			defer func() { _ = page.Close() }()
			page.ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
			if answer.Code != 500 {
				return nil
			}
			return fmt.Errorf("%s", answer.Body)
		},
		"otelobserve.New": func() error { return stand.ErrorOf(otelobserve.New(nil)) },

		"gormlocktest.ExpectBegin":     mock(func(t testing.TB, m sqlmock.Sqlmock) { gormlocktest.ExpectBegin(t, m, keys, nil) }),
		"gormlocktest.ExpectBeginTx":   mock(func(t testing.TB, m sqlmock.Sqlmock) { gormlocktest.ExpectBeginTx(t, m, gormlock.Locking(key), nil) }),
		"gormlocktest.ExpectAcquire":   mock(func(t testing.TB, m sqlmock.Sqlmock) { gormlocktest.ExpectAcquire(t, m, keys, nil) }),
		"gormlocktest.ExpectOnce":      mock(func(t testing.TB, m sqlmock.Sqlmock) { gormlocktest.ExpectOnce(t, m, "k", nil) }),
		"gormlocktest.ExpectOnceFound": mock(func(t testing.TB, m sqlmock.Sqlmock) { gormlocktest.ExpectOnceFound(t, m, "k", 1, nil) }),
		"gormlocktest.Hold": func() error {
			return fatal(t, func(t testing.TB) { gormlocktest.Hold(t, pool, key, nil) })
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("it panics: %v", p)
				}
			}()
			if err := call(); err == nil || !strings.Contains(err.Error(), "nil") && !strings.Contains(err.Error(), "zero") {
				t.Errorf("%v", err)
			}
		})
	}
	taken := slices.Sorted(maps.Keys(calls))
	for _, name := range takers(t) {
		if !slices.Contains(taken, name) {
			t.Errorf("%s takes options, and nobody tried a nil one", name)
		}
	}
}

// fatal is what a function of a test says when it ends the test.
func fatal(t testing.TB, call func(t testing.TB)) error {
	f := &failing{TB: t}
	panicked := make(chan any, 1)
	go func() {
		defer func() { panicked <- recover() }()
		call(f)
	}()
	if p := <-panicked; p != nil {
		panic(p)
	}
	return f.err
}

type failing struct {
	testing.TB
	err error
}

func (f *failing) Fatal(args ...any) {
	f.err = fmt.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

func (f *failing) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }

// takers are the exported functions and methods of all public packages that take any number of options.
func takers(t *testing.T) (names []string) {
	t.Helper()
	root := filepath.Join("..", "..")
	skipped := []string{"internal", "tests", "examples", "bench", "cmd", "scripts", "gormlockvet", "docs", "testdata"}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); path != root && (slices.Contains(skipped, name) || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			return err
		}
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Name.IsExported() && takesOptions(f) {
				names = append(names, file.Name.Name+"."+receiver(f)+f.Name.Name)
			}
		}
		return nil
	})
	if err != nil || len(names) < 20 {
		t.Fatalf("%d functions found: %v", len(names), err)
	}
	return names
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

// takesOptions reports whether the last parameter is any number of options or functions.
func takesOptions(f *ast.FuncDecl) bool {
	params := f.Type.Params.List
	if len(params) == 0 {
		return false
	}
	many, ok := params[len(params)-1].Type.(*ast.Ellipsis)
	if !ok {
		return false
	}
	switch of := many.Elt.(type) {
	case *ast.FuncType:
		return true
	case *ast.Ident:
		return strings.HasSuffix(of.Name, "Option")
	case *ast.SelectorExpr:
		return strings.HasSuffix(of.Sel.Name, "Option")
	}
	return false
}
