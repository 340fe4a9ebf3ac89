package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

const (
	// asksMost is how many handlers ask for their jobs at a time. Each needs a connection.
	asksMost = 8
	// askTries is how often one asks if the answer may be lost, or may be one that cannot be read. askPause is the first pause between two of them.
	askTries = 5
	askPause = 10 * time.Millisecond
	// unaskedPause is how long a handler pauses if it could not ask.
	unaskedPause = time.Second
)

// unaskedError says that nothing is known about a job, because the question failed. So this was no attempt.
type unaskedError struct{ cause error }

func (e *unaskedError) Error() string {
	return "its handler has not begun, because the server could not be asked for the job: " + e.cause.Error()
}

func (e *unaskedError) Unwrap() error { return e.cause }

// handleAlone asks for a job, and handles it if this process still has it.
func (w *Worker[T]) handleAlone(ctx context.Context, e *engine, it *item) error {
	found, err := w.ask(ctx, e, []*item{it})
	if unasked := (*unaskedError)(nil); errors.As(err, &unasked) {
		rest(ctx, unaskedPause)
	}
	if err != nil {
		return err
	}
	return w.handleAnswered(ctx, e, it, found[it])
}

// handleUnproven asks for a job in one statement with those in the queue that are as unproven, and handles the job. If that fails, each of them is
// asked for alone.
func (w *Worker[T]) handleUnproven(ctx context.Context, e *engine, it *item) error {
	waiting := e.takeUnproven()
	if len(waiting) == 0 {
		return w.handleAlone(ctx, e, it)
	}
	asking, stop := context.WithTimeout(ctx, unprovenMost) // meanwhile nobody else can have these jobs
	defer stop()
	found, err := w.ask(asking, e, append([]*item{it}, waiting...))
	e.queueAgain(waiting, func(one *item) (is bool) {
		if err != nil {
			e.alone(one)
			return true
		}
		row := found[one]
		one.handle = func(ctx context.Context) error { return w.handle(ctx, row) }
		return row != nil
	})
	if err != nil {
		return w.handleAlone(ctx, e, it)
	}
	return w.handleAnswered(ctx, e, it, found[it])
}

// handleAnswered handles a job that this process had when the question was sent, unless the lease may have ended since. row is nil if the job was
// taken over or stopped, or if somebody had locked the row.
func (w *Worker[T]) handleAnswered(ctx context.Context, e *engine, it *item, row *T) error {
	if row == nil || ctx.Err() != nil || e.hasLost(it) {
		return errNotBegun
	}
	return w.handle(ctx, row)
}

// ask reads the rows of those of the jobs that this process still has, if nobody has locked them. It renews their leases. It does so with a
// statement that claims: GORM cannot close the rows of a query if a [database/sql.Scanner] panics. No job begins any more when the run ends, so then
// nobody waits for the answer.
func (w *Worker[T]) ask(ctx context.Context, e *engine, list []*item) (found map[*item]*T, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	heedEnd := context.AfterFunc(e.asking, stop)
	defer heedEnd()
	select {
	case e.asks <- struct{}{}:
		defer func() { <-e.asks }()
	case <-ctx.Done():
		return nil, errNotBegun
	}
	ids, claims := arrays(list)
	var rows []T
	var sent holder.Instant
	for n := range askTries {
		sent = e.proofs.clock()
		rows, err = w.claimRows(ctx, power(len(list)), map[string]any{}, func(q *gorm.DB) *gorm.DB {
			return q.Where(w.t.sql("{ID} = ANY(?::bigint[]) AND {ClaimedBy} = ANY(?::text[]) AND {State} || '' = 'running'"), ids, claims)
		})
		if !mayBeLost(err) {
			break
		}
		rest(ctx, askPause<<n)
	}
	switch {
	case err == nil:
	case len(rows) > 0: // the server has answered, so the error is of the model's code, whatever it looks like
		return nil, fmt.Errorf("the job cannot be read: %w", err)
	case ctx.Err() != nil:
		return nil, errNotBegun
	case saysNothing(err):
		return nil, &unaskedError{err}
	default:
		return nil, fmt.Errorf("the job cannot be read: %w", err)
	}
	type claimed struct {
		id    int64
		claim string
	}
	read := make(map[claimed]*T, len(rows))
	for i := range rows {
		j := any(&rows[i]).(isJob).job() //nolint:forcetypeassert // checked by New
		read[claimed{j.ID, j.ClaimedBy}] = &rows[i]
	}
	found = make(map[*item]*T, len(rows))
	for _, it := range list {
		if row := read[claimed{it.id, it.claim}]; row != nil {
			found[it] = row
		}
	}
	e.proved(slices.DeleteFunc(slices.Clone(list), func(it *item) bool { return found[it] == nil }), sent)
	return found, nil
}

// mayBeLost reports whether the answer may be lost. Code of the model that reads a damaged value may return the same error, but does so each time.
func mayBeLost(err error) bool {
	return sqlstate.Of(err) == "" && !sqlstate.IsUnsent(err) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

// saysNothing reports whether an error without rows says nothing about the job that was asked for: the server could not be reached, or refused for
// another reason than the job's row.
func saysNothing(err error) bool {
	if sqlstate.Of(err) != "" {
		return !sqlstate.IsOfARow(err)
	}
	return sqlstate.IsUnsent(err) || mayBeLost(err) || sqlstate.IsOfTheNetwork(err)
}
