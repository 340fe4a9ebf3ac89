package locks_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
	"github.com/gormlock/gormlock/work"
)

type task struct {
	work.Job
	Text string
}

// handle is the handler of workers that never work.
func handle(context.Context, *task) error { return nil }

// asked are the calls of all functions that are given a db, by their names and what else they are about.
func asked(t *testing.T) map[string]func(tx *gorm.DB) error {
	t.Helper()
	other := pgtest.Key(t)
	bare := func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{NewDB: true}) }
	read := func(tx *gorm.DB) *stand.Account {
		var a stand.Account
		stand.Must(t, bare(tx).First(&a, 1).Error)
		return &a
	}
	return map[string]func(tx *gorm.DB) error{
		"gormlock.AcquireXactLock": func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{other}) },
		"gormlock.AutoMigrate":     func(tx *gorm.DB) error { return gormlock.AutoMigrate(tx, &widget{}) },
		"gormlock.Check":           func(tx *gorm.DB) error { return gormlock.Check(tx, &stand.Account{}) },
		"gormlock.Claim": func(tx *gorm.DB) error {
			return stand.ErrorOf(gormlock.Claim[stand.Account](tx, 1, map[string]any{"balance": 7}))
		},
		"gormlock.Claim: none": func(tx *gorm.DB) error {
			return stand.ErrorOf(gormlock.Claim[stand.Account](tx.Where("false"), 1, map[string]any{"balance": 7}))
		},
		"gormlock.FenceFor": func(tx *gorm.DB) error { return stand.ErrorOf(gormlock.FenceFor(tx, other)) },
		"gormlock.FenceTx": func(tx *gorm.DB) error {
			token, err := gormlock.FenceFor(bare(tx), other)
			stand.Must(t, err)
			return gormlock.FenceTx(tx, token)
		},
		"gormlock.LockRow":        func(tx *gorm.DB) error { return gormlock.LockRow(tx, &stand.Account{ID: 1}) },
		"gormlock.LockRows":       func(tx *gorm.DB) error { return gormlock.LockRows(tx, &[]stand.Account{{ID: 1}}) },
		"gormlock.LockRows: none": func(tx *gorm.DB) error { return gormlock.LockRows(tx, &[]stand.Account{}) },
		"gormlock.MigrateAll":     gormlock.MigrateAll,
		"gormlock.MigrateOnce":    gormlock.MigrateOnce,
		"gormlock.Once": func(tx *gorm.DB) error {
			return stand.ErrorOf(gormlock.Once(tx, "key", func(*gorm.DB) (int, error) { return 1, nil }))
		},
		"gormlock.SaveMerged": func(tx *gorm.DB) error {
			base := read(tx)
			mine := *base
			mine.Balance++
			return gormlock.SaveMerged(tx, &mine, base)
		},
		"gormlock.SaveMerged: nothing": func(tx *gorm.DB) error {
			base := read(tx)
			mine := *base
			return gormlock.SaveMerged(tx, &mine, base)
		},
		"gormlock.SweepOnce": func(tx *gorm.DB) error { return stand.ErrorOf(gormlock.SweepOnce(tx, time.Hour, 1)) },
		"gormlock.Touch":     func(tx *gorm.DB) error { return gormlock.Touch(tx, read(tx)) },
		"gormlock.Transaction": func(tx *gorm.DB) error { // whose tx goes on to ask for it
			return gormlock.Transaction(tx, func(tx *gorm.DB) error { return tx.First(&stand.Account{}).Error })
		},
		"gormlock.VerifyVersion": func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, read(tx)) },
		"work.Complete": func(tx *gorm.DB) error {
			job := &task{}
			stand.Must(t, work.Enqueue(bare(tx), job))
			stand.Must(t, bare(tx).Exec("UPDATE tasks SET state = 'running'").Error)
			stand.Must(t, bare(tx).First(job).Error)
			return work.Complete(tx, job)
		},
		"work.Enqueue":       func(tx *gorm.DB) error { return work.Enqueue(tx, &task{}) },
		"work.Enqueue: none": func(tx *gorm.DB) error { return work.Enqueue[task](tx) },
		"work.Migrate":       func(tx *gorm.DB) error { return work.Migrate(tx, &task{}) },
		"work.New":           func(tx *gorm.DB) error { return stand.ErrorOf(work.New(tx, handle)) },
		"work.Requeue":       func(tx *gorm.DB) error { return stand.ErrorOf(work.Requeue(t.Context(), tx, &task{}, 1)) },
		"work.Stats":         func(tx *gorm.DB) error { return stand.ErrorOf(work.Stats(t.Context(), tx, &task{})) },
	}
}

// silent are the functions that are given a db and send nothing to its server.
var silent = []string{"gormlock.Initialize", "gormlocktest.AssertInstalled", "gormlocktest.PretendLocks", "hooks.Install"}

// refusing are those that are an error for a db on which a lock was asked: they are in no transaction, or have a scope of their own.
var refusing = []string{"gormlock.Check", "gormlock.FenceTx", "work.Migrate", "work.New", "work.Requeue", "work.Stats"}

// A function of gormlock that is given a db on which a lock was asked takes it, also if it makes no statement of that db, or says that it
// does not.
func TestLocks_askedOfFunctions(t *testing.T) {
	t.Parallel()
	calls := asked(t)
	for name := range calls {
		about, _, _ := strings.Cut(name, ":")
		for how, ask := range map[string]func(tx *gorm.DB, key lockkey.Key) *gorm.DB{
			"a scope":  func(tx *gorm.DB, key lockkey.Key) *gorm.DB { return tx.Scopes(gormlock.WithXactLock(key)) },
			"a clause": func(tx *gorm.DB, key lockkey.Key) *gorm.DB { return tx.Clauses(gormlock.XactLock(key)) },
			"a scope of a scope": func(tx *gorm.DB, key lockkey.Key) *gorm.DB {
				return tx.Scopes(func(db *gorm.DB) *gorm.DB { return db.Scopes(gormlock.WithXactLock(key)) })
			},
			"a session": func(tx *gorm.DB, key lockkey.Key) *gorm.DB {
				return tx.Scopes(gormlock.WithXactLock(key)).Session(&gorm.Session{})
			},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				db := stand.Versioned(t, []any{&stand.Account{}})
				stand.Must(t, gormlock.MigrateAll(db))
				stand.Must(t, work.Migrate(db, &task{}))
				stand.MustDo(t, db.Create(&stand.Account{}))
				key := pgtest.Key(t)
				err := db.Transaction(func(tx *gorm.DB) error {
					err := asked(t)[name](ask(tx, key))
					if err == nil && !pgtest.Held(t, key) {
						t.Error("the lock is not held")
					}
					return err
				})
				if refuses := slices.Contains(refusing, about); (err != nil) != refuses {
					t.Errorf("%v, and it is to be an error: %t", err, refuses)
				}
				pgtest.AssertFree(t, key)
			})
		}
	}
	for _, name := range takingADB(t) {
		_, called := calls[name]
		if called == slices.Contains(silent, name) {
			t.Errorf("%s is given a db: called with a lock that is asked on it: %t", name, called)
		}
	}
}

// MigrateAll begins a transaction where there is none, and takes in it what is asked.
func TestMigrateAll_takesTheLockOutsideOfATransaction(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	key := pgtest.Key(t)
	held := db.Begin()
	stand.Must(t, gormlock.AcquireXactLock(held, []lockkey.Key{key}))
	err := gormlock.MigrateAll(db.Scopes(gormlock.WithXactLock(key, gormlock.Try())))
	if !errors.Is(err, gormlock.ErrNotAcquired) {
		t.Errorf("while another has it: %v", err)
	}
	if db.Migrator().HasTable("gormlock_fence") {
		t.Error("it has made tables")
	}
	stand.Must(t, held.Rollback().Error)
	stand.Must(t, gormlock.MigrateAll(db.Scopes(gormlock.WithXactLock(key, gormlock.Try()))))
}

// takingADB are the functions and methods with a parameter that is a db.
func takingADB(t *testing.T) (names []string) {
	t.Helper()
	texts, err := filepath.Glob(filepath.Join("..", "api", "*.txt"))
	stand.Must(t, err)
	for _, text := range texts {
		file, err := parser.ParseFile(token.NewFileSet(), text, nil, 0)
		stand.Must(t, err)
		for _, declared := range file.Decls {
			f, is := declared.(*ast.FuncDecl)
			if is && slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool { return isDB(p.Type) }) {
				names = append(names, file.Name.Name+"."+f.Name.Name)
			}
		}
	}
	if len(names) < 20 {
		t.Errorf("only %v", names)
	}
	return names
}

func isDB(e ast.Expr) bool {
	pointer, is := e.(*ast.StarExpr)
	if !is {
		return false
	}
	selected, is := pointer.X.(*ast.SelectorExpr)
	return is && selected.Sel.Name == "DB" && selected.X.(*ast.Ident).Name == "gorm"
}
