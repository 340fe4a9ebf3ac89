package work_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/work"
)

// takers are the functions that take a db, and what they do.
var takers = map[string]func(db *gorm.DB, m *Mail) error{
	"New": func(db *gorm.DB, _ *Mail) error {
		_, err := work.New(db, func(context.Context, *Mail) error { return nil })
		return err
	},
	"Migrate": func(db *gorm.DB, _ *Mail) error { return work.Migrate(db, &Mail{}) },
	"Stats": func(db *gorm.DB, _ *Mail) error {
		_, err := work.Stats(context.Background(), db, &Mail{})
		return err
	},
	"Requeue": func(db *gorm.DB, m *Mail) error {
		_, err := work.Requeue(context.Background(), db, &Mail{}, m.ID)
		return err
	},
	"Enqueue":  func(db *gorm.DB, _ *Mail) error { return work.Enqueue(db, &Mail{}) },
	"Complete": work.Complete[Mail],
}

func TestTakers_areAll(t *testing.T) {
	t.Parallel()
	var found []string
	names, err := os.ReadDir(".")
	must(t, err)
	for _, name := range names {
		if !strings.HasSuffix(name.Name(), ".go") || strings.HasSuffix(name.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name.Name(), nil, parser.SkipObjectResolution)
		must(t, err)
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Name.IsExported() && slices.ContainsFunc(f.Type.Params.List, takesDB) {
				found = append(found, f.Name.Name)
			}
		}
	}
	if known := slices.Sorted(maps.Keys(takers)); !slices.Equal(slices.Sorted(slices.Values(found)), known) {
		t.Errorf("these functions take a db: %q, and these are tested: %q", found, known)
	}
}

func takesDB(param *ast.Field) bool {
	pointer, is := param.Type.(*ast.StarExpr)
	if !is {
		return false
	}
	of, is := pointer.X.(*ast.SelectorExpr)
	return is && of.Sel.Name == "DB"
}

// What db carries is used, or it is an error.
func TestTakers_dropNothing(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, gormlock.MigrateAll(db))
	pool, err := db.DB()
	must(t, err)
	token, err := fence.Issue(t.Context(), pool, gormlock.Key("report"))
	must(t, err)
	key := pgtest.Key(t)
	held := hold(t, db, key)
	defer held()
	type giving struct {
		give func(*gorm.DB) *gorm.DB
		uses map[string]error // the calls that use it, and their errors
	}
	locked := map[string]error{"Enqueue": gormlock.ErrNotAcquired, "Complete": gormlock.ErrNotAcquired}
	for what, g := range map[string]giving{
		"Clauses": {func(db *gorm.DB) *gorm.DB { return db.Clauses(gormlock.XactLock(key, gormlock.Try())) }, locked},
		"Scopes":  {func(db *gorm.DB) *gorm.DB { return db.Scopes(gormlock.WithXactLock(key, gormlock.Try())) }, locked},
		"Session": {func(db *gorm.DB) *gorm.DB {
			return db.Clauses(gormlock.XactLock(key, gormlock.Try())).Session(&gorm.Session{})
		}, locked},
		"ExpectVersion": {func(db *gorm.DB) *gorm.DB { return db.Clauses(gormlock.ExpectVersion(77)) }, map[string]error{"Enqueue": nil, "Complete": gormlock.ErrStale}},
		"RowLock":       {func(db *gorm.DB) *gorm.DB { return db.Clauses(gormlock.RowLock(gormlock.ForUpdate)) }, map[string]error{"Enqueue": nil, "Complete": nil}},
		"Fence":         {func(db *gorm.DB) *gorm.DB { return db.Clauses(gormlock.Fence(token)) }, map[string]error{"Enqueue": nil, "Complete": nil}},
		"Where":         {func(db *gorm.DB) *gorm.DB { return db.Where("1 = 2") }, map[string]error{"Enqueue": nil, "Complete": gormlock.ErrStale}},
		"Scopes, Where": {func(db *gorm.DB) *gorm.DB { return db.Scopes(func(q *gorm.DB) *gorm.DB { return q.Where("1 = 2") }) }, map[string]error{"Enqueue": nil, "Complete": gormlock.ErrStale}},
		"Select":        {func(db *gorm.DB) *gorm.DB { return db.Select("text") }, map[string]error{"Enqueue": nil}},
		"Omit":          {func(db *gorm.DB) *gorm.DB { return db.Omit("State") }, map[string]error{"Enqueue": nil}},
		"Scopes, Omit":  {func(db *gorm.DB) *gorm.DB { return db.Scopes(func(q *gorm.DB) *gorm.DB { return q.Omit("State") }) }, map[string]error{"Enqueue": nil}},
		"associations":  {func(db *gorm.DB) *gorm.DB { return db.Omit(clause.Associations) }, map[string]error{"Enqueue": nil, "Complete": nil}},
		"Unscoped":      {func(db *gorm.DB) *gorm.DB { return db.Unscoped() }, map[string]error{"Enqueue": nil, "Complete": nil}},
		"Table":         {func(db *gorm.DB) *gorm.DB { return db.Table("mails") }, map[string]error{"Enqueue": nil, "Complete": nil}},
	} {
		for name, call := range takers {
			for where, in := range map[string]func(func(*gorm.DB) error) error{
				"db": func(f func(*gorm.DB) error) error { return f(db) },
				"tx": func(f func(*gorm.DB) error) error { return db.Transaction(f) },
			} {
				m := &Mail{}
				must(t, work.Enqueue(db, m))
				was := map[bool]string{true: "running", false: "dead"}[name == "Complete"]
				must(t, db.Model(&Mail{}).Where("id = ?", m.ID).Update("state", was).Error)
				m = reload(t, db, m.ID)
				err := in(func(db *gorm.DB) error { return call(g.give(db), m) })
				want, uses := g.uses[name]
				switch {
				case uses && want == nil:
				case uses && !errors.Is(err, want) && !errors.Is(err, gormlock.ErrNoTransaction):
					t.Errorf("%s uses %s of its %s: %v", name, what, where, err)
				case !uses && (!errors.Is(err, gormlock.ErrOption) || reload(t, db, m.ID).State != was || reload(t, db, m.ID).Version != 2):
					t.Errorf("%s is given %s with its %s, and says %v", name, what, where, err)
				}
			}
		}
	}
}

// A statement of a hook does not count as carried by its db.
func TestTakers_inAHook(t *testing.T) {
	t.Parallel()
	db := open(t)
	dead := enqueue(t, db, "dead")[0]
	must(t, db.Model(dead).Update("state", "dead").Error)
	must(t, db.Callback().Update().After("gorm:update").Register("again", func(hook *gorm.DB) {
		if hook.Statement.Table == "effects" {
			n, err := work.Requeue(t.Context(), hook.Session(&gorm.Session{NewDB: true}), &Mail{}, dead.ID)
			if _ = hook.AddError(err); n != 1 {
				t.Errorf("%d jobs are ready again: %v", n, err)
			}
		}
	}))
	must(t, db.Model(&Effect{}).Where("id > 0").Update("text", "x").Error)
	if now := reload(t, db, dead.ID); now.State != "ready" {
		t.Errorf("it is %s", now.State)
	}
}

// Enqueue stores the fields that a job sets for the workers, or returns an error if a Select or Omit leaves one out.
func TestEnqueue_leavesOut(t *testing.T) {
	t.Parallel()
	db := open(t)
	soon := time.Now().Add(time.Hour).Round(time.Second)
	for _, try := range []struct {
		give    func(*gorm.DB) *gorm.DB
		job     work.Job
		refused bool
	}{
		{func(db *gorm.DB) *gorm.DB { return db.Select("Text") }, work.Job{RunAt: soon}, true},
		{func(db *gorm.DB) *gorm.DB { return db.Select("Text", "RunAt") }, work.Job{RunAt: soon}, true},
		{func(db *gorm.DB) *gorm.DB { return db.Select("Text", "run_at", "state") }, work.Job{RunAt: soon}, false},
		{func(db *gorm.DB) *gorm.DB { return db.Omit("State", "RunAt") }, work.Job{RunAt: soon}, true},
		{func(db *gorm.DB) *gorm.DB { return db.Omit("state") }, work.Job{RunAt: soon}, true},
		{func(db *gorm.DB) *gorm.DB { return db.Omit("AccountID") }, work.Job{RunAt: soon, Priority: 7, Queue: "bulk", MaxAttempts: 2, Attempts: 1}, false},
		{func(db *gorm.DB) *gorm.DB { return db.Select("*") }, work.Job{RunAt: soon, Priority: 7}, false},
		{func(db *gorm.DB) *gorm.DB { return db.Select("Text") }, work.Job{}, false},
		{func(db *gorm.DB) *gorm.DB { return db.Select("Text") }, work.Job{Queue: "default"}, false},
		{func(db *gorm.DB) *gorm.DB { return db.Select("Text") }, work.Job{Queue: "bulk"}, true},
		{func(db *gorm.DB) *gorm.DB { return db.Select("Text") }, work.Job{Priority: 7}, true},
		{func(db *gorm.DB) *gorm.DB { return db.Omit("MaxAttempts") }, work.Job{MaxAttempts: 3}, true},
		{func(db *gorm.DB) *gorm.DB { return db.Omit("Attempts") }, work.Job{Attempts: 3}, true},
	} {
		for _, give := range []func(*gorm.DB) *gorm.DB{try.give, func(db *gorm.DB) *gorm.DB { return db.Scopes(try.give) }} {
			for _, others := range []int{0, 2} {
				m := &Mail{Job: try.job, Text: "x"}
				jobs := []*Mail{m}
				for range others {
					jobs = append(jobs, &Mail{Text: "other"})
				}
				err := work.Enqueue(give(db), jobs...)
				if errors.Is(err, gormlock.ErrOption) != try.refused || err != nil && !try.refused {
					t.Errorf("%+v: %v", try.job, err)
				}
				if err != nil {
					continue
				}
				now := reload(t, db, m.ID)
				if !try.job.RunAt.IsZero() && !now.RunAt.Equal(try.job.RunAt) || now.Priority != try.job.Priority || now.Attempts != try.job.Attempts {
					t.Errorf("%+v is stored as %+v", try.job, now)
				}
			}
		}
	}
}

// Without jobs, Enqueue still takes the lock that tx asks for.
func TestEnqueue_ofNothingTakesTheLock(t *testing.T) {
	t.Parallel()
	db := open(t)
	key := pgtest.Key(t)
	release := hold(t, db, key)
	defer release()
	err := db.Transaction(func(tx *gorm.DB) error {
		return work.Enqueue[Mail](tx.Clauses(gormlock.XactLock(key, gormlock.Try())))
	})
	if !errors.Is(err, gormlock.ErrNotAcquired) {
		t.Error(err)
	}
	must(t, work.Enqueue[Mail](db))
}

// hold holds a lock in a transaction until it is released.
func hold(t testing.TB, db *gorm.DB, key lockkey.Key) (release func()) {
	t.Helper()
	tx := db.Begin()
	must(t, gormlock.AcquireXactLock(tx, []lockkey.Key{key}))
	return func() { tx.Rollback() }
}
