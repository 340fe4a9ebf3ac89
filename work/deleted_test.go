package work_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

type (
	// flag is 0 in rows that are not deleted, like the flag of GORM's plugin soft_delete.
	flag int

	// goneAt is a program's own type that embeds GORM's.
	goneAt struct{ gorm.DeletedAt }

	// tenant hides the rows of other tenants if the context has a tenant.
	tenant int

	// lessee does the same, and refuses queries if the context has no tenant.
	lessee int

	// visible hides rows by a condition that is not a comparison.
	visible bool
)

func (flag) QueryClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{hidden{f, flagged}}
}
func (flag) DeleteClauses(f *schema.Field) []clause.Interface { return []clause.Interface{raised{f}} }
func (tenant) QueryClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{hidden{f, others}}
}
func (lessee) QueryClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{hidden{f, ownAlone}}
}
func (visible) QueryClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{hidden{f, unseen}}
}

// hidden is a clause that adds a condition to a query.
type hidden struct {
	field *schema.Field
	by    func(*gorm.Statement, clause.Column) clause.Expression
}

func (hidden) Name() string               { return "" }
func (hidden) Build(clause.Builder)       {}
func (hidden) MergeClause(*clause.Clause) {}

func (h hidden) ModifyStatement(stmt *gorm.Statement) {
	if condition := h.by(stmt, clause.Column{Table: clause.CurrentTable, Name: h.field.DBName}); condition != nil && !stmt.Unscoped {
		stmt.AddClause(clause.Where{Exprs: []clause.Expression{condition}})
	}
}

func flagged(_ *gorm.Statement, column clause.Column) clause.Expression {
	return clause.Eq{Column: column, Value: 0}
}

type tenantKey struct{}

func others(stmt *gorm.Statement, column clause.Column) clause.Expression {
	if id, ok := stmt.Context.Value(tenantKey{}).(int); ok {
		return clause.Eq{Column: column, Value: id}
	}
	return nil
}

var errNoTenant = errors.New("no tenant in the context")

func ownAlone(stmt *gorm.Statement, column clause.Column) clause.Expression {
	condition := others(stmt, column)
	if condition == nil {
		_ = stmt.AddError(errNoTenant)
	}
	return condition
}

func unseen(_ *gorm.Statement, column clause.Column) clause.Expression {
	return clause.Expr{SQL: "?", Vars: []any{column}}
}

// raised turns a delete into an update.
type raised struct{ field *schema.Field }

func (raised) Name() string               { return "" }
func (raised) Build(clause.Builder)       {}
func (raised) MergeClause(*clause.Clause) {}

func (r raised) ModifyStatement(stmt *gorm.Statement) {
	if stmt.SQL.Len() > 0 || stmt.Unscoped {
		return
	}
	stmt.AddClause(clause.Set{{Column: clause.Column{Name: r.field.DBName}, Value: 1}})
	column, keys := schema.ToQueryValues(stmt.Table, stmt.Schema.PrimaryFieldDBNames, [][]any{{stmt.ReflectValue.FieldByName("ID").Interface()}})
	stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.IN{Column: column, Values: keys}}})
	stmt.AddClauseIfNotExists(clause.Update{})
	stmt.Build("UPDATE", "SET", "WHERE")
}

type (
	Flagged struct {
		work.Job
		AccountID int64
		Gone      flag `gorm:"not null;default:0"`
	}
	Wrapped struct {
		work.Job
		AccountID int64
		Gone      goneAt
	}
	Epoch struct {
		work.Job
		AccountID int64
		Gone      gorm.DeletedAt `gorm:"zeroValue:1970-01-01 00:00:01;default:'1970-01-01 00:00:01';not null"`
	}
	// Twice has two such fields, of which GORM uses the first.
	Twice struct {
		work.Job
		AccountID int64
		Gone      gorm.DeletedAt
		Other     gorm.DeletedAt
	}
	Rented struct {
		work.Job
		AccountID int64
		Tenant    tenant
	}
	Leased struct {
		work.Job
		Tenant lessee
	}
	Seen struct {
		work.Job
		Visible visible
	}
)

// A softly deleted job does not exist for its account, Stats and Requeue, whatever the field and value that mark it.
func TestSoftDelete_ofEachKind(t *testing.T) {
	t.Parallel()
	t.Run("a flag", func(t *testing.T) { deleted(t, func() *Flagged { return &Flagged{AccountID: 1} }) })
	t.Run("a type around DeletedAt", func(t *testing.T) { deleted(t, func() *Wrapped { return &Wrapped{AccountID: 1} }) })
	t.Run("a DeletedAt with a zero value", func(t *testing.T) { deleted(t, func() *Epoch { return &Epoch{AccountID: 1} }) })
}

func deleted[T any](t *testing.T, one func() *T) {
	t.Parallel()
	for name, opts := range map[string][]work.Option{"plain": nil, "FairBy": {work.FairBy("account_id")}, "OnePer": {work.OnePer("account_id")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
			must(t, work.Migrate(db, new(T), opts...))
			first := one()
			must(t, work.Enqueue(db, first, one()))
			must(t, db.Delete(first).Error)
			counts(t, db, new(T), 1, 0)
			runs := 0
			w, err := work.New(db, func(context.Context, *T) error { runs++; return work.Dead(nil) }, opts...)
			must(t, err)
			if n := drained(t, t.Context(), w); n != 1 || runs != 1 {
				t.Errorf("drained %d, %d runs: want the second job alone", n, runs)
			}
			must(t, db.Model(new(T)).Unscoped().Where("state = 'ready'").Update("state", "dead").Error)
			counts(t, db, new(T), 0, 1)
			if n, err := work.Requeue(t.Context(), db, new(T), 1, 2); n != 1 || err != nil {
				t.Errorf("requeued %d, %v: want the second job alone", n, err)
			}
		})
	}
}

func drained[T any](t *testing.T, ctx context.Context, w *work.Worker[T]) int {
	t.Helper()
	ctx, stop := context.WithTimeout(ctx, bound)
	defer stop()
	n, err := w.Drain(ctx)
	must(t, err)
	return n
}

func counts(t *testing.T, db *gorm.DB, model any, ready, dead int64) {
	t.Helper()
	stats, err := work.Stats(t.Context(), db, model)
	if err != nil || len(stats) != 1 || stats[0].Ready != ready || stats[0].Dead != dead {
		t.Errorf("Stats: %+v, %v: want %d ready and %d dead", stats, err, ready, dead)
	}
}

// If there are two such fields, GORM uses the first. So a job exists both for its worker and in its account, or for neither.
func TestSoftDelete_byTwoFields(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	must(t, work.Migrate(db, &Twice{}, work.OnePer("account_id")))
	must(t, work.Enqueue(db, &Twice{AccountID: 1}, &Twice{AccountID: 1}))
	must(t, db.Exec("UPDATE twices SET other = now() WHERE id = 1").Error)
	w, err := work.New(db, func(context.Context, *Twice) error { return nil }, work.OnePer("account_id"))
	must(t, err)
	if n := drained(t, t.Context(), w); n != 2 {
		t.Errorf("drained %d, want 2, as a query finds", n)
	}
}

// If the context of a worker hides other tenants' jobs, these jobs do not exist in the accounts either.
func TestRun_ofATenant(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	must(t, work.Migrate(db, &Rented{}, work.OnePer("account_id")))
	must(t, work.Enqueue(db, &Rented{AccountID: 1, Tenant: 1}, &Rented{AccountID: 1, Tenant: 2}, &Rented{AccountID: 1, Tenant: 1}))
	w, err := work.New(db, func(context.Context, *Rented) error { return nil }, work.OnePer("account_id"))
	must(t, err)
	second := context.WithValue(t.Context(), tenantKey{}, 2)
	stats, err := work.Stats(second, db, &Rented{})
	if err != nil || len(stats) != 1 || stats[0].Ready != 1 {
		t.Errorf("Stats of a tenant: %+v, %v", stats, err)
	}
	if n := drained(t, second, w); n != 1 {
		t.Errorf("drained %d of the second tenant, want 1", n)
	}
	if n := drained(t, t.Context(), w); n != 2 {
		t.Errorf("drained %d of all tenants, want 2", n)
	}
}

// A field that refuses queries, for example without a tenant, refuses everything that reads rows. Making the table and storing jobs work without a
// tenant.
func TestTenant_thatRefusesQueries(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	must(t, work.Migrate(db, &Leased{}))
	must(t, work.Enqueue(db, &Leased{Tenant: 1}, &Leased{Tenant: 2}))
	first := context.WithValue(t.Context(), tenantKey{}, 1)
	w, err := work.New(db.WithContext(first), func(context.Context, *Leased) error { return work.Dead(nil) })
	must(t, err)
	for name, call := range map[string]func(ctx context.Context) error{
		"Find": func(ctx context.Context) error { return db.WithContext(ctx).Find(&[]Leased{}).Error },
		"Stats": func(ctx context.Context) error {
			stats, err := work.Stats(ctx, db, &Leased{})
			if err != nil && stats != nil {
				t.Errorf("Stats of a refusal: %+v", stats)
			}
			return err
		},
		"Stats in a transaction": func(ctx context.Context) error {
			return db.Transaction(func(tx *gorm.DB) error { _, err := work.Stats(ctx, tx, &Leased{}); return err })
		},
		"Requeue": func(ctx context.Context) error { _, err := work.Requeue(ctx, db, &Leased{}, 2); return err },
		"New": func(ctx context.Context) error {
			_, err := work.New(db.WithContext(ctx), func(context.Context, *Leased) error { return nil })
			return err
		},
		"Run": func(ctx context.Context) error {
			ctx, stop := context.WithTimeout(ctx, 300*time.Millisecond)
			defer stop()
			return w.Run(ctx)
		},
		"Drain": func(ctx context.Context) error { _, err := w.Drain(ctx); return err },
	} {
		if err := call(t.Context()); !errors.Is(err, errNoTenant) {
			t.Errorf("%s without a tenant: %v", name, err)
		}
		if err := call(first); err != nil {
			t.Errorf("%s of the first: %v", name, err)
		}
	}
	must(t, db.Exec("UPDATE leaseds SET state = 'dead'").Error)
	if n, err := work.Requeue(t.Context(), db, &Leased{}, 1, 2); n != 0 || !errors.Is(err, errNoTenant) {
		t.Errorf("Requeue of dead jobs without a tenant: %d, %v", n, err)
	}
	if n, err := work.Requeue(first, db, &Leased{}, 1, 2); n != 1 || err != nil {
		t.Errorf("Requeue of the first's dead jobs: %d, %v", n, err)
	}
}

// Conditions that workers cannot interpret are refused.
func TestModels_withOtherConditionsAreRefused(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	if err := work.Migrate(db, &Seen{}); !errors.Is(err, gormlock.ErrOption) {
		t.Errorf("Migrate: %v", err)
	}
}
