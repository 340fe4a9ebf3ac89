package work

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/sound"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// Worker works on the jobs of one table. Its methods may be called from any number of goroutines; each call has workers of
// its own.
type Worker[T any] struct {
	db     *gorm.DB
	pool   fresh
	t      *table
	config *config
	handle func(ctx context.Context, job *T) error
}

// New returns a worker that calls handle for each job. If handle returns nil, the job is done. After an error it is
// tried again, after the [Backoff], until its MaxAttempts are used up. [Later] and [Dead] change that, and [Complete]
// completes the job in a transaction. A panic counts as an error. The context of handle ends when the job was taken
// over or may be, because its lease could not be renewed, or when the worker ends and its [Grace] is over.
//
// New returns an error for everything that cannot work: a bad option, a model without [Job] or one that cannot be claimed, a table that lacks a
// column or an index, and a db with conditions, clauses or scopes, which the worker would drop.
func New[T any](db *gorm.DB, handle func(ctx context.Context, job *T) error, opts ...Option) (*Worker[T], error) {
	if err := install.Usable(db); err != nil {
		return nil, err
	}
	if handle == nil {
		return nil, optionError("the handler is nil")
	}
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if statement.Transaction(db.Statement) != nil {
		return nil, optionError("db is a transaction, which ends before the worker: give New the db that gorm.Open returned")
	}
	if db.DryRun {
		return nil, optionError("db is a DryRun, in which nothing is claimed: give New the db that gorm.Open returned")
	}
	if err := mustBeBare(db, "New", "give it the db that gorm.Open returned; a worker takes all jobs of a table, or those of its Queues"); err != nil {
		return nil, err
	}
	db = statement.Beside(db).Session(&gorm.Session{Context: db.Statement.Context}) // a Statement and Config of its own
	// GORM's translated errors lack the code of the error and where it occurred.
	db.TranslateError = false
	t, err := tableOf(db, new(T))
	if err != nil {
		return nil, err
	}
	if t, err = t.with(c); err != nil {
		return nil, err
	}
	pool := journal.DatabaseUnder(db.ConnPool)
	if pool == nil {
		return nil, optionError("db is no pool of connections but a %T: give New the db that gorm.Open returned", db.ConnPool)
	}
	if err := t.check(db); err != nil {
		return nil, err
	}
	if _, err := gormlock.Claim[T](db.Session(&gorm.Session{DryRun: true}), 1, map[string]any{t.column("State"): running}); err != nil {
		return nil, fmt.Errorf("gormlock: work: no worker can claim a job of %s: %w", t.fields.Name, err)
	}
	planned, err := freshOver(db.Statement.Context, journal.PoolOver(db, pool))
	if err != nil {
		return nil, err
	}
	db.Statement.ConnPool = planned // for claims
	return &Worker[T]{db, planned, t, c, handle}, nil
}

// Run works until ctx ends. Then it claims nothing new, releases at once the jobs that have not begun, and lets
// handlers go on for their [Grace]. It returns nil if all end in that time. Otherwise their contexts end, their jobs
// are released without counting the attempt, and the error says how many. While it runs, errors of the database are
// logged by GORM's logger, and it tries again.
func (w *Worker[T]) Run(ctx context.Context) error {
	e, err := w.engine(ctx)
	if err != nil {
		return err
	}
	defer runs.Delete(e.owner)
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	running, stop := context.WithCancel(background) // goes on after ctx while handlers run
	defer stop()
	var listening, looking, finishing sync.WaitGroup
	listening.Go(func() { e.listen(ctx) })
	looking.Go(func() { e.look(ctx) })
	looking.Go(func() { e.renew(running) })
	looking.Go(func() { e.watch(running) })
	finishing.Go(func() { e.finish(background) })
	e.start()
	_, err = e.fetchAndWind(ctx, false, stop)
	looking.Wait()
	listening.Wait()
	err = errors.Join(err, e.flush(), e.giveBackUnheard())
	end()
	finishing.Wait()
	return err
}

// Drain works until nothing is ready, and returns how many attempts it has made. Jobs that are tried again later, and
// jobs with a RunAt in the future, stay. So do jobs that the server refuses to change. If the server refuses to store the outcome of a job,
// the job runs again when its lease ends. The error names both kinds. Use Drain in tests, and in programs that are
// started now and then. When ctx ends, it returns the error of ctx, and ends as [Worker.Run] does.
func (w *Worker[T]) Drain(ctx context.Context) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	e, err := w.engine(ctx)
	if err != nil {
		return 0, err
	}
	defer runs.Delete(e.owner)
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	running, stop := context.WithCancel(background)
	defer stop()
	var keeping, finishing sync.WaitGroup
	keeping.Go(func() { e.renew(running) })
	keeping.Go(func() { e.watch(running) })
	finishing.Go(func() { e.finish(background) })
	e.start()
	err = e.fetch(ctx, true)
	if err == nil {
		err = e.refused.left(w.t.name)
	}
	if late := e.wind(stop); err == nil {
		err = late
	}
	keeping.Wait()
	err = errors.Join(err, e.flush(), e.giveBackUnheard())
	end()
	finishing.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pace.given, err
}

func (w *Worker[T]) engine(ctx context.Context) (*engine, error) {
	t, err := w.t.under(w.db.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if err := t.allowed(); err != nil {
		return nil, err
	}
	e := newEngine(ctx, w.config)
	e.rows = rows{w.pool, t, holder.DefaultOwner() + ":" + rand.Text()[:8]}
	e.claim = func(ctx context.Context, n int, scope func(*gorm.DB) *gorm.DB) ([]*item, error) {
		return w.claim(ctx, e, n, scope)
	}
	e.alone = func(it *item) {
		it.apart = true
		it.handle = func(ctx context.Context) error { return w.handleAlone(ctx, e, it) }
	}
	e.doubt = func(it *item) {
		it.handle = func(ctx context.Context) error { return w.handleUnproven(ctx, e, it) }
	}
	e.log = func(ctx context.Context, format string, args ...any) { w.db.Logger.Warn(ctx, format, args...) }
	e.source = &levels{e: e, at: map[level]*position{}}
	if w.t.one != "" || w.t.fair != "" {
		e.source = &heads{e: e}
	}
	runs.Store(e.owner, e)
	return e, nil
}

// claim claims jobs that scope selects, and holds them.
func (w *Worker[T]) claim(ctx context.Context, e *engine, n int, scope func(*gorm.DB) *gorm.DB) ([]*item, error) {
	sent := e.proofs.clock()
	rows, err := w.claimRows(ctx, n, map[string]any{
		"State": running, "ClaimedBy": e.nextClaim(), "Attempts": gorm.Expr(w.t.sql("{Attempts} + 1")),
	}, scope)
	if err != nil {
		return w.claimAlone(ctx, e, len(rows), err)
	}
	items := make([]*item, 0, len(rows))
	for i := range rows {
		row := &rows[i]
		j := any(row).(isJob).job() //nolint:forcetypeassert // checked by New
		it := e.item(j)
		it.handle = func(ctx context.Context) error { return w.handle(ctx, row) }
		items = append(items, it)
	}
	e.hold(items, sent)
	return items, nil
}

// claimRows claims and reads rows, with a lease that begins now. If code that reads them panics, such as AfterFind, that is an error.
// So it is if that code ends its goroutine, which is one of its own.
func (w *Worker[T]) claimRows(ctx context.Context, n int, assign map[string]any, scope func(*gorm.DB) *gorm.DB) (rows []T, err error) {
	err = errors.New("code of the model ended its goroutine")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if cause := recover(); cause != nil {
				err = fmt.Errorf("panic: %v\n\n%s", cause, debug.Stack())
			}
		}()
		rows, err = w.claimRowsHere(ctx, n, assign, scope)
	}()
	<-ended
	return rows, sound.Error(err)
}

func (w *Worker[T]) claimRowsHere(ctx context.Context, n int, assign map[string]any, scope func(*gorm.DB) *gorm.DB) ([]T, error) {
	assign["ClaimedUntil"] = gorm.Expr("clock_timestamp() + ?::bigint * interval '1 microsecond'", w.config.lease.Microseconds())
	return gormlock.Claim[T](w.db.WithContext(ctx), n, assign, scope)
}

// claimAlone looks for the jobs of a claim that has failed. If the server executed its statement, one of its rows cannot be read, and the error
// does not say which. So each handler reads its own row, and only the job of the bad row fails.
func (w *Worker[T]) claimAlone(ctx context.Context, e *engine, read int, err error) ([]*item, error) {
	if read == 0 && !sqlstate.MayBeDone(err) {
		return nil, err
	}
	e.unsure = true
	sent := e.proofs.clock()
	items, failed := e.unheard(ctx)
	if len(items) == 0 {
		e.failed = time.Now()
		return nil, errors.Join(err, failed)
	}
	e.source.again() // there may be more
	for _, it := range items {
		e.alone(it)
	}
	e.hold(items, sent) // perhaps for longer than the lease: each handler renews it first
	return items, nil
}

// start starts the workers.
func (e *engine) start() {
	for range e.config.workers {
		e.workers.Add(1)
		go e.work()
	}
}

// listen listens for new jobs until ctx ends.
func (e *engine) listen(ctx context.Context) {
	ear := &ear{db: e.db.DB, table: e.t.quoted, wake: e.wake, report: func(err error) {
		switch {
		case ctx.Err() != nil: // the run ends
		case err == nil:
			e.log(ctx, "gormlock: work: workers of %s are notified of new jobs again", e.t.name)
		case errors.Is(err, errNoListen):
			e.log(ctx, "%v: workers of %s look for jobs every %s instead", err, e.t.name, e.poll)
		default:
			e.log(ctx, "gormlock: work: no connection listens for new jobs: %v: workers of %s look for them every %s until there is one", err, e.t.name, e.poll)
		}
	}}
	local.add(ear)
	l := local.join(ctx, ear)
	e.wake(nil) // there may be jobs that were announced after the first look
	<-ctx.Done()
	local.remove(ear, l)
}

// fetchAndWind fetches until ctx ends, and then ends the workers. It does not wait for a claim that is on its way.
func (e *engine) fetchAndWind(ctx context.Context, draining bool, stopRenewing func()) (fetched, late error) {
	over := make(chan error, 1)
	go func() { over <- e.fetch(ctx, draining) }()
	select {
	case <-ctx.Done():
		late = e.wind(stopRenewing)
		return <-over, late
	case fetched = <-over:
		return fetched, e.wind(stopRenewing)
	}
}

// wind ends the workers: jobs that have not begun are released, handlers have their Grace.
func (e *engine) wind(stopRenewing func()) error {
	e.mu.Lock()
	e.stopping = true
	e.giveBack(append(slices.Clip(e.asked), e.queue...))
	e.queue = nil
	e.stopAsking()
	e.cond.Broadcast()
	e.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		e.workers.Wait()
		close(ended)
	}()
	defer stopRenewing()
	grace := time.NewTimer(e.grace)
	defer grace.Stop()
	select {
	case <-ended:
		return nil
	case <-grace.C:
	}
	e.mu.Lock()
	late := e.pace.busy
	e.mu.Unlock()
	e.end(errGrace)
	if late == 0 {
		<-ended
		return nil
	}
	select { // a handler that respects its context ends at once
	case <-ended:
	case <-time.After(min(time.Second, flush)):
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, it := range e.held {
		e.giveBack([]*item{it})
	}
	return fmt.Errorf("gormlock: work: %d handlers of %s did not end within the Grace of %s: their contexts have ended, and their jobs are released", late, e.t.name, e.grace)
}
