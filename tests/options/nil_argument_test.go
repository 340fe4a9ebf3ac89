package options_test

import (
	"context"
	"database/sql"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/etag"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/hooks"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/observe/otelobserve"
	"github.com/gormlock/gormlock/pgxlock"
	"github.com/gormlock/gormlock/sessionlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
	"github.com/gormlock/gormlock/work"
)

// A nil pointer, interface or function is an error that says so: of the call, or of the next one where the call has no error.
// The reviewed surfaces name every parameter that can be nil, so that a new one gets its line here.
func TestNilArgument(t *testing.T) {
	t.Parallel()
	calls := refused(t)
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			if err := survives(t, call); err == nil || !strings.Contains(err.Error(), "nil") {
				t.Errorf("%v", err)
			}
		})
	}
	allowed := harmless(t)
	for name, call := range allowed {
		t.Run(name, func(t *testing.T) {
			_ = survives(t, func() error { call(); return nil })
		})
	}
	found := nilable(t)
	for _, name := range found {
		_, refuses := calls[name]
		_, allows := allowed[name]
		if !refuses && !allows && !slices.ContainsFunc(untried, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			t.Errorf("%s can be nil, and nobody tried it", name)
		}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(calls)), slices.Collect(maps.Keys(allowed))) {
		if about, _, extra := strings.Cut(name, ": "); !extra && !slices.Contains(found, about) {
			t.Errorf("%s is no parameter that can be nil", name)
		}
	}
}

// survives returns what the call does, and fails the test where it panics.
func survives(t *testing.T, call func() error) error {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("it panics: %v", p)
		}
	}()
	return call()
}

// untried have neither an error nor a test to fail: a nil mock panics in the test that gives it, and a nil request in the
// handler. JSON and keys know what nil is.
var untried = []string{
	"etag.NotModified ", "etag.WriteError w", "inspect.Page.ServeHTTP ",
	"gormlock.Key ", "lockkey.Of ", "lockkey.SQL ", "gormlocktest.ExpectOnceFound result", "gormlocktest.ExpectOnceStored result",
	"gormlocktest.ExpectClaim ", "gormlocktest.ExpectCommit ", "gormlocktest.ExpectFenced ", "gormlocktest.ExpectFencedUpdate ", "gormlocktest.ExpectOnceUndo ",
	"gormlocktest.ExpectRollback ", "gormlocktest.ExpectStale ", "gormlocktest.ExpectUndo ", "gormlocktest.ExpectVersionedDelete ",
	"gormlocktest.ExpectVersionedReturning ", "gormlocktest.ExpectVersionedUpdate ",
}

// refused are the calls whose nil is an error. What follows a colon is another nil of the same parameter.
func refused(t *testing.T) map[string]func() error {
	t.Helper()
	db, pool, leases, locks := openAll(t)
	key, ctx := pgtest.Key(t, "nil"), t.Context()
	keys := []lockkey.Key{key}
	stand.Must(t, work.Migrate(db, &Task{}))

	in := func(call func(tx *gorm.DB) error) func() error { return func() error { return db.Transaction(call) } }
	nothing := func(*gorm.DB) error { t.Error("it ran"); return nil }
	initialize := func(option gormlock.Option) func() error {
		return func() error { return gormlock.New(option).Initialize(db) }
	}
	transaction := func(option gormlock.TxOption) func() error {
		return func() error { return gormlock.Transaction(db, nothing, option) }
	}
	written := func(tx *gorm.DB) error {
		return tx.Model(&stand.Account{ID: 1}).Update("balance", 2).Error
	}
	open := func(option sessionlock.Option) func() error {
		return func() error { return stand.ErrorOf(sessionlock.Open(ctx, pgtest.DSN(t), option)) }
	}
	newLeases := func(option lease.Option) func() error {
		return func() error { return stand.ErrorOf(lease.New(ctx, pool, option)) }
	}
	worker := func(option work.Option) func() error {
		return func() error {
			return stand.ErrorOf(work.New(db, func(context.Context, *Task) error { return nil }, option))
		}
	}
	page := func(p *inspect.Page) error {
		defer func() { _ = p.Close() }()
		answer := httptest.NewRecorder()
		p.ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
		if answer.Code != 500 {
			return nil
		}
		return errors.New(answer.Body.String())
	}
	mocked := func(call func(t testing.TB)) func() error { return func() error { return fatal(t, call) } }
	var noPool *sql.DB
	var noTx *sql.Tx

	return map[string]func() error{
		"advisory.Acquire tx":                   func() error { return advisory.Acquire(ctx, nil, keys) },
		"advisory.Acquire tx: *sql.Tx":          func() error { return advisory.Acquire(ctx, noTx, keys) },
		"advisory.KeyLocker.SessionLock conn":   func() error { return advisory.SessionLocker(key).SessionLock(ctx, nil) },
		"advisory.KeyLocker.SessionUnlock conn": func() error { return advisory.SessionLocker(key).SessionUnlock(ctx, nil) },
		"etag.Of value":                         func() error { return stand.ErrorOf(etag.Of(nil)) },
		"etag.Of value: pointer":                func() error { return stand.ErrorOf(etag.Of((*stand.Account)(nil))) },
		"etag.IfMatch r":                        func() error { return stand.ErrorOf(etag.IfMatch(nil)) },
		"fence.Latest q":                        func() error { return stand.ErrorOf(fence.Latest(ctx, nil, fence.Token{Space: 1, ID: 1, Number: 1})) },
		"fence.Latest q: *sql.DB":               func() error { return stand.ErrorOf(fence.Latest(ctx, noPool, fence.Token{Space: 1, ID: 1, Number: 1})) },
		"fence.Migrate db":                      func() error { return fence.Migrate(ctx, nil) },
		"fence.Migrate db: *sql.DB":             func() error { return fence.Migrate(ctx, noPool) },
		"fence.For k":                           func() error { return stand.ErrorOf(fence.For(nil, 1)) },
		"fence.Issue q":                         func() error { return stand.ErrorOf(fence.Issue(ctx, nil, key)) },
		"fence.Issue q: *sql.Tx":                func() error { return stand.ErrorOf(fence.Issue(ctx, noTx, key)) },
		"fence.Issue key":                       in(func(tx *gorm.DB) error { return stand.ErrorOf(fence.Issue(ctx, tx.Statement.ConnPool, nil)) }),
		"gormlock.AcquireXactLock tx":           func() error { return gormlock.AcquireXactLock(nil, keys) },
		"gormlock.AutoMigrate db":               func() error { return gormlock.AutoMigrate(nil, &stand.Account{}) },
		"gormlock.AutoMigrate models":           func() error { return gormlock.AutoMigrate(db, nil) },
		"gormlock.Check db":                     func() error { return gormlock.Check(nil, &stand.Account{}) },
		"gormlock.Check models":                 func() error { return gormlock.Check(db, nil) },
		"gormlock.Claim db": func() error {
			return stand.ErrorOf(gormlock.Claim[stand.Account](nil, 1, map[string]any{"balance": 1}))
		},
		"gormlock.Claim scopes": func() error {
			return stand.ErrorOf(gormlock.Claim[stand.Account](db, 1, map[string]any{"balance": 1}, nil))
		},
		"gormlock.FenceFor tx":            func() error { return stand.ErrorOf(gormlock.FenceFor(nil, key)) },
		"gormlock.FenceTx tx":             func() error { return gormlock.FenceTx(nil, fence.Token{Space: 1, ID: 1, Number: 1}) },
		"gormlock.LockRow tx":             func() error { return gormlock.LockRow(nil, &stand.Account{ID: 1}) },
		"gormlock.LockRow row":            in(func(tx *gorm.DB) error { return gormlock.LockRow(tx, nil) }),
		"gormlock.LockRow row: pointer":   in(func(tx *gorm.DB) error { return gormlock.LockRow(tx, (*stand.Account)(nil)) }),
		"gormlock.LockRows tx":            func() error { return gormlock.LockRows(nil, &[]stand.Account{{ID: 1}}) },
		"gormlock.LockRows rows":          in(func(tx *gorm.DB) error { return gormlock.LockRows(tx, nil) }),
		"gormlock.LockRows rows: pointer": in(func(tx *gorm.DB) error { return gormlock.LockRows(tx, (*[]stand.Account)(nil)) }),
		"gormlock.MigrateAll db":          func() error { return gormlock.MigrateAll(nil) },
		"gormlock.MigrateOnce db":         func() error { return gormlock.MigrateOnce(nil) },
		"gormlock.Once tx": func() error {
			return stand.ErrorOf(gormlock.Once(nil, "k", func(*gorm.DB) (int, error) { return 1, nil }))
		},
		"gormlock.Once fn":                      in(func(tx *gorm.DB) error { return stand.ErrorOf(gormlock.Once[int](tx, "k", nil)) }),
		"gormlock.SaveMerged tx":                func() error { return gormlock.SaveMerged(nil, &stand.Account{ID: 1}, &stand.Account{ID: 1}) },
		"gormlock.SaveMerged mine":              in(func(tx *gorm.DB) error { return gormlock.SaveMerged(tx, nil, &stand.Account{ID: 1}) }),
		"gormlock.SaveMerged mine: pointer":     in(func(tx *gorm.DB) error { return gormlock.SaveMerged(tx, (*stand.Account)(nil), &stand.Account{ID: 1}) }),
		"gormlock.SaveMerged base":              in(func(tx *gorm.DB) error { return gormlock.SaveMerged(tx, &stand.Account{ID: 1}, nil) }),
		"gormlock.SaveMerged base: pointer":     in(func(tx *gorm.DB) error { return gormlock.SaveMerged(tx, &stand.Account{ID: 1}, (*stand.Account)(nil)) }),
		"gormlock.SweepOnce db":                 func() error { return stand.ErrorOf(gormlock.SweepOnce(nil, time.Hour, 1)) },
		"gormlock.Touch db":                     func() error { return gormlock.Touch(nil, &stand.Account{ID: 1}) },
		"gormlock.Touch value":                  func() error { return gormlock.Touch(db, nil) },
		"gormlock.Touch value: pointer":         func() error { return gormlock.Touch(db, (*stand.Account)(nil)) },
		"gormlock.Transaction db":               func() error { return gormlock.Transaction(nil, nothing) },
		"gormlock.Transaction fn":               func() error { return gormlock.Transaction(db, nil) },
		"gormlock.VerifyVersion db":             func() error { return gormlock.VerifyVersion(nil, &stand.Account{ID: 1}) },
		"gormlock.VerifyVersion value":          in(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, nil) }),
		"gormlock.VerifyVersion value: pointer": in(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, (*stand.Account)(nil)) }),
		"gormlock.ForRequest request": in(func(tx *gorm.DB) error {
			return stand.ErrorOf(gormlock.Once(tx, "r", func(*gorm.DB) (int, error) { t.Error("it ran"); return 1, nil }, gormlock.ForRequest(nil)))
		}),
		"gormlock.WithObserver o":                      initialize(gormlock.WithObserver(nil)),
		"gormlock.Plugin.Initialize db":                func() error { return gormlock.New().Initialize(nil) },
		"gormlock.Plugin.Initialize db: no plugin":     func() error { return pgtest.Open(t).Use((*gormlock.Plugin)(nil)) },
		"gormlock.Plugin.Initialize db: a zero plugin": func() error { return pgtest.Open(t).Use(&gormlock.Plugin{}) },
		"gormlock.OnRetry told":                        transaction(gormlock.OnRetry(nil)),
		"gormlock.RetryIf curable":                     transaction(gormlock.RetryIf(nil)),
		"gormlock.ExpectVersion version":               func() error { return written(db.Clauses(gormlock.ExpectVersion(nil))) },
		"gormlock.IfUnchanged before":                  func() error { return written(db.Clauses(gormlock.IfUnchanged(nil, "balance"))) },
		"gormlock.IfUnchanged before: pointer":         func() error { return written(db.Clauses(gormlock.IfUnchanged((*stand.Account)(nil), "balance"))) },
		"gormlocktest.AssertFree pool":                 mocked(func(t testing.TB) { gormlocktest.AssertFree(t, nil, key) }),
		"gormlocktest.AssertHeld pool":                 mocked(func(t testing.TB) { gormlocktest.AssertHeld(t, nil, key) }),
		"gormlocktest.AssertInstalled db":              mocked(func(t testing.TB) { gormlocktest.AssertInstalled(t, nil) }),
		"gormlocktest.ExpectAcquire mock":              mocked(func(t testing.TB) { gormlocktest.ExpectAcquire(t, nil, keys) }),
		"gormlocktest.ExpectBegin mock":                mocked(func(t testing.TB) { gormlocktest.ExpectBegin(t, nil, keys) }),
		"gormlocktest.ExpectBeginTx mock":              mocked(func(t testing.TB) { gormlocktest.ExpectBeginTx(t, nil, gormlock.Locking(key)) }),
		"gormlocktest.ExpectOnce mock":                 mocked(func(t testing.TB) { gormlocktest.ExpectOnce(t, nil, "k") }),
		"gormlocktest.ExpectOnceFound mock":            mocked(func(t testing.TB) { gormlocktest.ExpectOnceFound(t, nil, "k", 1) }),
		"gormlocktest.ExpectOnceStored mock":           mocked(func(t testing.TB) { gormlocktest.ExpectOnceStored(t, nil, "k", 1) }),
		"gormlocktest.ExpectRowLock mock":              mocked(func(t testing.TB) { gormlocktest.ExpectRowLock(t, nil, gormlock.Try()) }),
		"gormlocktest.ExpectRowLocked mock":            mocked(func(t testing.TB) { gormlocktest.ExpectRowLocked(t, nil, gormlock.Try()) }),
		"gormlocktest.Held pool":                       mocked(func(t testing.TB) { gormlocktest.Held(t, nil, key) }),
		"gormlocktest.PretendLocks db":                 func() error { return gormlocktest.PretendLocks(nil) },
		"gormlocktest.WaitBlocked pool":                mocked(func(t testing.TB) { gormlocktest.WaitBlocked(t, nil, key, 1) }),
		"gormlocktest.WaitFree pool":                   mocked(func(t testing.TB) { gormlocktest.WaitFree(t, nil, key) }),
		"gormlocktest.Hold pool":                       mocked(func(t testing.TB) { gormlocktest.Hold(t, nil, key) }),
		"hooks.Install db":                             func() error { return hooks.Install(nil, hooks.Handlers{}) },
		"inspect.Migrate db":                           func() error { return inspect.Migrate(ctx, nil) },
		"inspect.Migrate db: *sql.DB":                  func() error { return inspect.Migrate(ctx, noPool) },
		"inspect.AllowCancel authorize":                func() error { return page(inspect.Handler(pool, inspect.AllowCancel(nil))) },
		"inspect.KeepNames db":                         func() error { return inspect.KeepNames(nil, nil).Close() },
		"inspect.Jobs models":                          func() error { return stand.ErrorOf(inspect.Snapshot(ctx, pool, inspect.Jobs(nil))) },
		"inspect.Handler db":                           func() error { return page(inspect.Handler(nil)) },
		"inspect.Snapshot db":                          func() error { return stand.ErrorOf(inspect.Snapshot(ctx, nil)) },
		"lease.Migrate db":                             func() error { return lease.Migrate(ctx, nil) },
		"lease.Migrate db: *sql.DB":                    func() error { return lease.Migrate(ctx, noPool) },
		"lease.Elector m":                              func() error { return lease.Elector(nil, key, time.Second).IsLeader(ctx) },
		"lease.Elector m: Resign":                      func() error { return lease.Elector(nil, key, time.Second).Resign(ctx) },
		"lease.New db":                                 func() error { return stand.ErrorOf(lease.New(ctx, nil)) },
		"lease.Manager.Do fn":                          func() error { return leases.Do(ctx, key, time.Minute, nil) },
		"lease.Manager.Every schedule": func() error {
			return leases.Every(ctx, key, nil, func(context.Context, time.Time) error { return nil })
		},
		"lease.Manager.Every fn":               func() error { return leases.Every(ctx, key, lease.Interval(time.Hour), nil) },
		"lease.Manager.Lead fn":                func() error { return leases.Lead(ctx, key, time.Minute, nil) },
		"lease.Listen l":                       newLeases(lease.Listen(nil)),
		"lease.Listen l: *sessionlock.Manager": newLeases(lease.Listen((*sessionlock.Manager)(nil))),
		"lease.Observer o":                     newLeases(lease.Observer(nil)),
		"lease.Daily location": func() error {
			return leases.Every(ctx, key, lease.Daily(1, 1, nil), func(context.Context, time.Time) error { return nil })
		},
		"otelobserve.KeyLabel label":        func() error { return stand.ErrorOf(otelobserve.New(otelobserve.KeyLabel(nil))) },
		"otelobserve.MeterProvider p":       func() error { return stand.ErrorOf(otelobserve.New(otelobserve.MeterProvider(nil))) },
		"pgxlock.Acquire tx":                func() error { return pgxlock.Acquire(ctx, nil, keys) },
		"pgxlock.Transaction db":            func() error { return pgxlock.Transaction(ctx, nil, func(pgx.Tx) error { return nil }) },
		"pgxlock.Transaction db: *pgx.Conn": func() error { return pgxlock.Transaction(ctx, (*pgx.Conn)(nil), func(pgx.Tx) error { return nil }) },
		"pgxlock.Transaction fn":            func() error { return pgxlock.Transaction(ctx, pgtest.Conn(t), nil) },
		"sessionlock.OpenConfig dsn":        func() error { return stand.ErrorOf(sessionlock.OpenConfig(ctx, nil)) },
		"sessionlock.Manager.Do fn":         func() error { return locks.Do(ctx, key, nil) },
		"sessionlock.Manager.Listen heard":  func() error { return locks.Listen(ctx, "x", nil) },
		"sessionlock.BeforeConnect change":  open(sessionlock.BeforeConnect(nil)),
		"sessionlock.Observer o":            open(sessionlock.Observer(nil)),
		"work.Complete tx":                  func() error { return work.Complete(nil, &Task{}) },
		"work.Complete job":                 in(func(tx *gorm.DB) error { return work.Complete[Task](tx, nil) }),
		"work.Enqueue tx":                   func() error { return work.Enqueue(nil, &Task{}) },
		"work.Enqueue jobs":                 in(func(tx *gorm.DB) error { return work.Enqueue[Task](tx, nil) }),
		"work.Migrate db":                   func() error { return work.Migrate(nil, &Task{}) },
		"work.Migrate model":                func() error { return work.Migrate(db, nil) },
		"work.Requeue db":                   func() error { return stand.ErrorOf(work.Requeue(ctx, nil, &Task{}, 1)) },
		"work.Requeue model":                func() error { return stand.ErrorOf(work.Requeue(ctx, db, nil, 1)) },
		"work.Backoff pause":                worker(work.Backoff(nil)),
		"work.Observer o":                   worker(work.Observer(nil)),
		"work.Stats db":                     func() error { return stand.ErrorOf(work.Stats(ctx, nil, &Task{})) },
		"work.Stats model":                  func() error { return stand.ErrorOf(work.Stats(ctx, db, nil)) },
		"work.New db":                       func() error { return stand.ErrorOf(work.New(nil, func(context.Context, *Task) error { return nil })) },
		"work.New handle":                   func() error { return stand.ErrorOf(work.New[Task](db, nil)) },
	}
}

// harmless are the calls for which nil has a meaning, as their documentation says.
func harmless(t *testing.T) map[string]func() {
	t.Helper()
	seen := func(o observe.Observer) func() { return func() { o.Observe(t.Context(), observe.Event{}) } }
	return map[string]func(){
		"etag.WriteError err":              func() { etag.WriteError(httptest.NewRecorder(), nil) },
		"gormlock.IsRetryable err":         func() { gormlock.IsRetryable(nil) },
		"gormlock.ConflictError.Is target": func() { (&gormlock.ConflictError{}).Is(nil) },
		"gormlock.FencedError.Is target":   func() { (&gormlock.FencedError{}).Is(nil) },
		"gormlock.StaleError.Is target":    func() { (&gormlock.StaleError{}).Is(nil) },
		"inspect.KeepNames logger":         func() { _ = inspect.KeepNames(pgtest.SQLDB(t), nil).Close() },
		"inspect.Tree v":                   func() { inspect.Tree(nil) },
		"observe.Contain o":                func() { observe.Contain(nil) },
		"observe.Multi observers":          seen(observe.Multi(nil, nil)),
		"observe.Slog logger":              seen(observe.Slog(nil)),
		"observe.NewQueue o":               seen(observe.NewQueue(nil, 1)),
		"work.Dead cause":                  func() { _ = work.Dead(nil) },
		"work.Later cause":                 func() { _ = work.Later(time.Second, nil) },
	}
}

// nilable are the parameters of exported functions and methods that can be nil, as package.[Type.]Function parameter.
func nilable(t *testing.T) (names []string) {
	t.Helper()
	texts, err := filepath.Glob(filepath.Join("..", "api", "*.txt"))
	stand.Must(t, err)
	var files []*ast.File
	can := map[string]bool{ // types of others and of internal packages, by their name
		"inspect.Execer": true,
		"any":            true, "error": true, "driver.Value": true, "http.ResponseWriter": true, "pgx.Tx": true, "metric.MeterProvider": true, "sqlmock.Sqlmock": true,
		"context.Context": false, "testing.TB": false, // nobody gives a nil one
		"string": false, "int": false, "int32": false, "int64": false, "float64": false, "bool": false, "byte": false,
		"time.Duration": false, "time.Time": false, "pgx.TxIsoLevel": false, "sql.IsolationLevel": false, "lockkey.Key": false,
	}
	for _, text := range texts {
		if strings.Contains(text, "gormlockvet") {
			continue // a tool, which go vet calls
		}
		file, err := parser.ParseFile(token.NewFileSet(), text, nil, 0)
		stand.Must(t, err)
		files = append(files, file)
		for _, declared := range file.Decls {
			if types, ok := declared.(*ast.GenDecl); ok && types.Tok == token.TYPE {
				for _, spec := range types.Specs {
					of := spec.(*ast.TypeSpec)
					if of.Assign.IsValid() {
						continue // named above
					}
					_, open := of.Type.(*ast.InterfaceType)
					can[file.Name.Name+"."+of.Name.Name] = open
				}
			}
		}
	}
	for _, file := range files {
		for _, declared := range file.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, p := range f.Type.Params.List {
				if !canBeNil(t, can, file.Name.Name, p.Type) {
					continue
				}
				for _, name := range p.Names {
					names = append(names, file.Name.Name+"."+receiver(f)+f.Name.Name+" "+name.Name)
				}
			}
		}
	}
	if len(names) < 100 {
		t.Fatalf("%d parameters found", len(names))
	}
	return names
}

func canBeNil(t *testing.T, can map[string]bool, pkg string, typ ast.Expr) bool {
	t.Helper()
	var name string
	switch typ := typ.(type) {
	case *ast.StarExpr, *ast.FuncType, *ast.InterfaceType:
		return true
	case *ast.Ellipsis:
		return canBeNil(t, can, pkg, typ.Elt)
	case *ast.ArrayType, *ast.MapType:
		return false // an empty one
	case *ast.Ident:
		name = typ.Name
		if ast.IsExported(name) {
			name = pkg + "." + name
		}
	case *ast.SelectorExpr:
		name = typ.X.(*ast.Ident).Name + "." + typ.Sel.Name
	}
	if strings.HasSuffix(name, "Option") {
		return false // TestNilOption
	}
	open, known := can[name]
	if !known {
		t.Errorf("%s: nobody knows whether it can be nil", name)
	}
	return open
}
