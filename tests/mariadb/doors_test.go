package mariadb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	source "go/token"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

// handle is what a door is given: one of them, or each in turn.
type handle struct {
	pool *sql.DB
	conn *sql.Conn
	tx   *sql.Tx
}

// runner is what pools, connections and transactions have in common.
type runner interface {
	fence.Execer
	fence.Queryer
}

// passage is one way into a package without GORM, by what it is given.
type passage map[string]func(ctx context.Context, h handle) error

func forPool(do func(ctx context.Context, pool *sql.DB) error) passage {
	return passage{"pool": func(ctx context.Context, h handle) error { return do(ctx, h.pool) }}
}

func forEach(do func(ctx context.Context, on runner) error) passage {
	return passage{
		"pool": func(ctx context.Context, h handle) error { return do(ctx, h.pool) },
		"conn": func(ctx context.Context, h handle) error { return do(ctx, h.conn) },
		"tx":   func(ctx context.Context, h handle) error { return do(ctx, h.tx) },
	}
}

// forTest is a door of package gormlocktest, which ends a test.
func forTest(do func(t testing.TB, pool *sql.DB)) passage {
	return forPool(func(ctx context.Context, pool *sql.DB) error {
		fake := &fakeTest{ctx: ctx}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer fake.clean()
			do(fake, pool)
		}()
		<-done
		return fromText(fake.said)
	})
}

type fakeTest struct {
	testing.TB
	ctx   context.Context
	said  string
	after []func()
}

func (f *fakeTest) Helper()           {}
func (f *fakeTest) Cleanup(do func()) { f.after = append(f.after, do) }
func (f *fakeTest) clean() {
	for _, do := range f.after {
		do()
	}
}
func (f *fakeTest) Context() context.Context { return f.ctx }
func (f *fakeTest) Fatal(said ...any)        { f.said = fmt.Sprint(said...); runtime.Goexit() }
func (f *fakeTest) Errorf(string, ...any)    { f.said = "it is looked at"; runtime.Goexit() }
func (f *fakeTest) Fatalf(string, ...any)    { f.said = "it is waited for"; runtime.Goexit() }

// fromText is the error that a text without an error says.
func fromText(text string) error {
	if _, rest, says := strings.Cut(text, gormlock.ErrNotPostgres.Error()+", not "); says {
		rest, _, _ = strings.Cut(rest, "\n")
		return fmt.Errorf("%w, not %s", gormlock.ErrNotPostgres, strings.TrimRight(rest, `"}</p>`))
	}
	return errors.New(text)
}

// withoutGORM is all that is given a *sql.DB, *sql.Conn or *sql.Tx.
var withoutGORM = map[string]passage{
	"advisory.Acquire": {
		"tx": func(ctx context.Context, h handle) error { return advisory.Acquire(ctx, h.tx, []lockkey.Key{key}) },
		"tx, Try": func(ctx context.Context, h handle) error {
			return advisory.Acquire(ctx, h.tx, []lockkey.Key{key}, advisory.Try())
		},
		"tx, many": func(ctx context.Context, h handle) error {
			return advisory.Acquire(ctx, h.tx, []lockkey.Key{key, lockkey.Of("b"), lockkey.Pair(1, 2)}, advisory.Timeout(time.Second))
		},
	},
	"advisory.SessionLock": {"conn": func(ctx context.Context, h handle) error {
		return advisory.SessionLocker(key).SessionLock(ctx, h.conn)
	}},
	"advisory.SessionUnlock": {"conn": func(ctx context.Context, h handle) error {
		return advisory.SessionLocker(key).SessionUnlock(ctx, h.conn)
	}},
	"fence.Issue":     forEach(func(ctx context.Context, on runner) error { _, err := fence.Issue(ctx, on, key); return err }),
	"fence.Latest":    forEach(func(ctx context.Context, on runner) error { _, err := fence.Latest(ctx, on, token(1)); return err }),
	"fence.Migrate":   forEach(func(ctx context.Context, on runner) error { return fence.Migrate(ctx, on) }),
	"inspect.Migrate": forEach(func(ctx context.Context, on runner) error { return inspect.Migrate(ctx, on) }),
	"lease.Migrate":   forEach(func(ctx context.Context, on runner) error { return lease.Migrate(ctx, on, lease.Table("mine")) }),
	"lease.New":       forPool(func(ctx context.Context, pool *sql.DB) error { _, err := lease.New(ctx, pool); return err }),
	"inspect.Snapshot": forPool(func(ctx context.Context, pool *sql.DB) error {
		_, err := inspect.Snapshot(ctx, pool)
		return err
	}),
	"inspect.Handler": {
		"page": func(ctx context.Context, h handle) error { return asked(ctx, h.pool, "text/html") },
		"JSON": func(ctx context.Context, h handle) error { return asked(ctx, h.pool, "application/json") },
	},
	"inspect.KeepNames":        forPool(keptNames),
	"gormlocktest.Hold":        forTest(func(t testing.TB, pool *sql.DB) { t.Helper(); gormlocktest.Hold(t, pool, key) }),
	"gormlocktest.Held":        forTest(func(t testing.TB, pool *sql.DB) { t.Helper(); gormlocktest.Held(t, pool, key) }),
	"gormlocktest.AssertHeld":  forTest(func(t testing.TB, pool *sql.DB) { t.Helper(); gormlocktest.AssertHeld(t, pool, key) }),
	"gormlocktest.AssertFree":  forTest(func(t testing.TB, pool *sql.DB) { t.Helper(); gormlocktest.AssertFree(t, pool, key) }),
	"gormlocktest.WaitBlocked": forTest(func(t testing.TB, pool *sql.DB) { t.Helper(); gormlocktest.WaitBlocked(t, pool, key, 1) }),
	"gormlocktest.WaitFree":    forTest(func(t testing.TB, pool *sql.DB) { t.Helper(); gormlocktest.WaitFree(t, pool, key) }),
}

// asked is what the page answers.
func asked(ctx context.Context, pool *sql.DB, accept string) error {
	page := inspect.Handler(pool)
	defer func() { _ = page.Close() }()
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	request.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, request)
	if answer.Code < 500 {
		return fmt.Errorf("answered %d", answer.Code)
	}
	return fromText(answer.Body.String())
}

// keptNames is what the observer logs, for it returns no error.
func keptNames(ctx context.Context, pool *sql.DB) error {
	said := make(logged, 1)
	names := inspect.KeepNames(pool, slog.New(said))
	defer func() { _ = names.Close() }()
	names.Observe(ctx, observe.Event{Kind: observe.Acquired, Source: "sessionlock", Space: 1, ID: 1, Key: "report/1"})
	select {
	case text := <-said:
		return fromText(text)
	case <-time.After(20 * time.Second):
		return errors.New("nothing is logged")
	}
}

// logged are the messages of a logger.
type logged chan string

func (l logged) Enabled(context.Context, slog.Level) bool { return true }
func (l logged) Handle(_ context.Context, r slog.Record) error {
	select {
	case l <- r.Message:
	default:
	}
	return nil
}
func (l logged) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l logged) WithGroup(string) slog.Handler      { return l }

// Each exported function and method that is given a pool, a connection or a transaction is among the doors.
func TestDoors_areAll(t *testing.T) {
	t.Parallel()
	found := exportedDoors(t)
	for _, name := range found {
		if withoutGORM[name] == nil {
			t.Errorf("%s is given what leads to a database: TestNeedsPostgres_withoutGORM has no door of this name", name)
		}
	}
	for name := range withoutGORM {
		if !slices.Contains(found, name) {
			t.Errorf("%s is no door", name)
		}
	}
}

var (
	isHandle = regexp.MustCompile(`\bsql\.(DB|Conn|Tx)\b`)
	runs     = []string{"ExecContext", "QueryContext", "QueryRowContext"}
)

// exportedDoors reads the source of the public packages, which are those with a reviewed surface.
func exportedDoors(t *testing.T) (found []string) {
	t.Helper()
	surfaces, err := filepath.Glob("../api/*.txt")
	if err != nil || len(surfaces) < 15 {
		t.Fatal(len(surfaces), err)
	}
	files := map[string][]*ast.File{}
	interfaces := map[string]bool{} // by name: a handle is one of these too
	parse := func(dir, name string) {
		set := source.NewFileSet()
		paths, _ := filepath.Glob(dir + "/*.go")
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if name != "" {
				files[name] = append(files[name], file)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, is := n.(*ast.TypeSpec); is && runsStatements(spec.Type) {
					interfaces[spec.Name.Name] = true
				}
				return true
			})
		}
	}
	for _, surface := range surfaces {
		name := strings.TrimSuffix(filepath.Base(surface), ".txt")
		dir := "../../" + strings.ReplaceAll(name, "_", "/")
		if name == "gormlock" {
			dir = "../.."
		}
		parse(dir, name)
	}
	err = filepath.WalkDir("../../internal", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			parse(path, "")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, parsed := range files {
		for _, file := range parsed {
			for _, declared := range file.Decls {
				function, is := declared.(*ast.FuncDecl)
				if is && function.Name.IsExported() && slices.ContainsFunc(function.Type.Params.List, func(p *ast.Field) bool { return leads(p.Type, interfaces) }) {
					found = append(found, name+"."+function.Name.Name)
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

func runsStatements(declared ast.Expr) bool {
	methods, is := declared.(*ast.InterfaceType)
	return is && slices.ContainsFunc(methods.Methods.List, func(m *ast.Field) bool {
		return slices.ContainsFunc(m.Names, func(name *ast.Ident) bool { return slices.Contains(runs, name.Name) })
	})
}

// leads reports whether a parameter of this type may be a handle.
func leads(parameter ast.Expr, interfaces map[string]bool) bool {
	switch of := parameter.(type) {
	case *ast.StarExpr:
		return leads(of.X, interfaces)
	case *ast.Ellipsis:
		return leads(of.Elt, interfaces)
	case *ast.ArrayType:
		return leads(of.Elt, interfaces)
	case *ast.InterfaceType:
		return runsStatements(of)
	case *ast.Ident:
		return interfaces[of.Name]
	case *ast.SelectorExpr:
		in, is := of.X.(*ast.Ident)
		return is && (isHandle.MatchString(in.Name+"."+of.Sel.Name) || in.Name != "pgx" && in.Name != "gorm" && interfaces[of.Sel.Name])
	}
	return false
}

// inOrder are the names of a map's entries.
func inOrder[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
