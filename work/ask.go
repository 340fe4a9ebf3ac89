package work

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// handleAlone reads the row of a job, if this process still has it, and handles the job.
func (w *Worker[T]) handleAlone(ctx context.Context, e *engine, it *item) error {
	row, sent, err := w.ask(ctx, e, it)
	if unasked := (*unaskedError)(nil); errors.As(err, &unasked) {
		rest(ctx, unaskedPause)
	}
	if err != nil {
		return err
	}
	e.proved([]*item{it}, sent)
	return w.handle(ctx, row)
}

// ask reads the row with a statement that claims: GORM cannot close the rows of a query if a [database/sql.Scanner] panics. It renews the lease.
func (w *Worker[T]) ask(ctx context.Context, e *engine, it *item) (row *T, sent holder.Instant, err error) {
	select {
	case e.asks <- struct{}{}:
		defer func() { <-e.asks }()
	case <-ctx.Done():
		return nil, sent, errNotBegun
	}
	var rows []T
	for n := range askTries {
		sent = e.proofs.clock()
		rows, err = w.claimRows(ctx, 1, map[string]any{}, func(q *gorm.DB) *gorm.DB {
			return q.Where(w.t.sql("{ID} = ? AND {ClaimedBy} = ? AND {State} || '' = 'running'"), it.id, it.claim)
		})
		if !mayBeLost(err) {
			break
		}
		rest(ctx, askPause<<n)
	}
	switch {
	case err != nil && saysNothing(err):
		return nil, sent, &unaskedError{err}
	case err != nil:
		return nil, sent, fmt.Errorf("the job cannot be read: %w", err)
	case len(rows) == 0: // it was taken over or stopped, or somebody has locked the row
		return nil, sent, errNotBegun
	}
	return &rows[0], sent, nil
}

// mayBeLost reports whether the answer may be lost. Code of the model that reads a damaged value may return the same error, but does so each time.
func mayBeLost(err error) bool {
	return sqlstate.Of(err) == "" && !sqlstate.IsUnsent(err) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

// saysNothing reports whether an error says nothing about the job that was asked for: the server could not be reached, or refused for another reason
// than the job's row.
func saysNothing(err error) bool {
	if sqlstate.Of(err) != "" {
		return !sqlstate.IsOfARow(err)
	}
	return sqlstate.IsUnsent(err) || !mayBeLost(err) && sqlstate.IsOfTheNetwork(err)
}
