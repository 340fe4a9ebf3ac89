package guard

import (
	"errors"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// jobGuard leaves a running job to its worker: a write of its struct changes neither its state nor its claim, and does not make another job run.
// The server decides that, because a struct shows what its row was, or what the program has made of it.
type jobGuard struct {
	*install.Job
	state, claim *clause.Assignment // what is SET, or nil
}

// jobOf is the guard of a job.
func (p *plan) jobOf(stmt *gorm.Statement) *jobGuard {
	if len(p.model.Renewed) == 0 || install.JobOf == nil {
		return nil
	}
	job := install.JobOf(stmt)
	if job == nil {
		return nil
	}
	return &jobGuard{Job: job}
}

// weigh notes what is SET.
func (g *jobGuard) weigh(s *schema.Schema, set clause.Set) {
	if g == nil {
		return
	}
	g.state, g.claim = nil, nil
	for i := range set {
		switch s.LookUpField(set[i].Column.Name) {
		case g.State:
			g.state = &set[i]
		case g.Claim:
			g.claim = &set[i]
		}
	}
}

// guards reports whether a row may be left out.
func (g *jobGuard) guards() bool { return g != nil && (g.state != nil || g.claim != nil) }

// guardsJob reports whether the statement is about jobs by their structs. A statement about rows that it finds by conditions alone is executed.
func (d *draft) guardsJob() bool {
	return d.job.guards() && (!d.isBulk() || d.given != nil || d.upsert != nil)
}

// isRunning reports whether a value is the State of a running job.
func (g *jobGuard) isRunning(value any) bool {
	text, _ := statement.TextOf(value)
	return text == g.Running
}

// Build writes the condition that the row is not running and will not be, or keeps the state and claim of its worker.
func (g *jobGuard) Build(to clause.Builder) {
	b := builder{SQL: statement.SQL{Statement: to.(*gorm.Statement)}} //nolint:forcetypeassert // GORM has no other builder
	idle, runs := " IS DISTINCT FROM '"+g.Running+"'", "='"+g.Running+"'"
	b.Text("(")
	defer b.Text(")")
	b.Column(b.Table, g.State.DBName)
	switch {
	case g.state == nil:
		b.Text(idle, " OR ")
		g.sameClaim(b)
	case g.isRunning(g.state.Value):
		b.Text(runs, " AND ")
		g.sameClaim(b)
	case !ofStruct(g.state.Value):
		b.Text(idle)
	default:
		b.Text(idle, " AND ")
		b.assigned(g.state.Value)
		b.Text(idle, " OR ")
		b.Column(b.Table, g.State.DBName)
		b.Text(runs, " AND ")
		b.assigned(g.state.Value)
		b.Text(runs, " AND ")
		g.sameClaim(b)
	}
}

// sameClaim writes the condition that the claim stays the same.
func (g *jobGuard) sameClaim(b builder) {
	if g.claim == nil {
		b.Text("TRUE")
		return
	}
	b.Column(b.Table, g.Claim.DBName)
	b.Text("=")
	b.assigned(g.claim.Value)
}

// ofStruct reports whether an upsert assigns what a struct holds.
func ofStruct(value any) bool {
	_, proposed := dialect.Excluded(value)
	_, held := value.(heldUpdate)
	return proposed || held
}

func (*jobGuard) owns(string) bool { return false }

func (*jobGuard) assign(_ builder, written bool) bool { return written }

func (*jobGuard) insert(builder, *clause.Values) {}

func (*jobGuard) why(*judge, *gorm.Statement, *Row, reflect.Value) error { return nil } // see whyRunning

func (g *jobGuard) hold(b builder) {
	if b.draft.guardsJob() {
		b.Text(" AND ")
		g.Build(b.Statement)
	}
}

// conflict makes an upsert skip running jobs, and jobs that it would make run.
func (g *jobGuard) conflict(b builder, found *clause.OnConflict) {
	if g.weigh(b.draft.model.Schema, found.DoUpdates); g.guards() {
		found.Where.Exprs = beside(g, found.Where.Exprs)
	}
}

// leftRunning is the condition for the rows that were left out.
type leftRunning struct{ draft *draft }

// Build writes the condition.
func (l leftRunning) Build(to clause.Builder) {
	b, d := builderOf(to, l.draft), l.draft
	b.Text("NOT ")
	d.job.Build(b.Statement)
	d.version.hold(b)
	if u := d.unchanged(); u.guards() {
		u.hold(b)
	}
}

// whyRunning returns the error of a job that an update has skipped.
func (j *judge) whyRunning(db *gorm.DB) error {
	mayBe := db.Error == nil && !db.DryRun && j.guardsJob() && (j.isBulk() || int(db.RowsAffected) < j.distinct())
	if !mayBe {
		return nil
	}
	own, _ := db.Statement.Clauses["WHERE"].Expression.(clause.Where)
	left, err := j.lookWhere(db, j.columnsToLookAt(), func(q *gorm.DB) *gorm.DB {
		if !j.isBulk() {
			var keys [][]any
			for i := range j.rows {
				keys = append(keys, j.named(db.Statement, &j.rows[i]).Key)
			}
			q = q.Where(KeyIn(j.model.Schema, keys))
		}
		return q.Clauses(clause.Where{Exprs: beside(leftRunning{&j.draft}, own.Exprs)}).Limit(1)
	})
	if err == nil && len(left) > 0 {
		err = j.refuseRunning(db, left[0])
	}
	return err
}

// whyRunningConflict returns the errors of jobs that an upsert has skipped.
func (j *judge) whyRunningConflict(db *gorm.DB, from []reflect.Value) error {
	if !j.job.guards() {
		return nil
	}
	var left []*Row
	var keys [][]any
	for i := range j.rows {
		if row := &j.rows[i]; !from[i].IsValid() && row.Key != nil {
			left, keys = append(left, row), append(keys, row.Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	found, err := j.look(db, keys)
	if err != nil {
		return err
	}
	var all []error
	for i, now := range found {
		if !now.IsValid() || j.upsertChecks(left[i]) && !j.version.accepts(left[i], j.version.Read(now.Value)) {
			continue
		}
		if j.job.runs(db.Statement, now.Value) || j.job.makesRun(db.Statement, left[i].Struct) {
			all = append(all, j.refuseRunning(db, now.Value))
		}
	}
	return errors.Join(all...)
}

// runs reports whether a struct is that of a running job.
func (g *jobGuard) runs(stmt *gorm.Statement, row reflect.Value) bool {
	state, _ := g.State.ValueOf(stmt.Context, row)
	return g.isRunning(state)
}

// makesRun reports whether the statement writes the State of a running job from a struct.
func (g *jobGuard) makesRun(stmt *gorm.Statement, row reflect.Value) bool {
	return g.state != nil && (g.isRunning(g.state.Value) || ofStruct(g.state.Value) && g.runs(stmt, row))
}

// upsertChecks reports whether the upsert compares the version of a row.
func (j *judge) upsertChecks(row *Row) bool {
	return !j.intent.Ignores() && j.version.Loaded(row.held)
}

func (j *judge) refuseRunning(db *gorm.DB, row reflect.Value) error {
	key, _ := statement.KeyOf(db.Statement, j.model.Schema, row)
	err := j.job.Refusal(j.rowName(db.Statement, key), j.job.runs(db.Statement, row))
	if db.RowsAffected > 0 {
		journal.Doom(db, err)
	}
	return err
}
