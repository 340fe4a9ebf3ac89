package lockrequest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/sqltext"
)

// Tx is what this package needs of an open transaction.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Acquire takes the locks in the transaction tx, all or none, in one round trip. On an error the transaction is as
// usable as it was, unless ctx has ended or the connection is gone.
func (r *Request) Acquire(ctx context.Context, tx Tx) error {
	if err := ctx.Err(); err != nil {
		return cause.Add(ctx, &lockError{state: err, what: r.String(), detail: "not asked for"})
	}
	text := r.saved(ctx)
	result, err := tx.ExecContext(text, text.Query)
	if err != nil {
		return r.undo(ctx, tx, err)
	}
	if text.Answers {
		return r.answered(result)
	}
	return nil
}

// The texts around a lock in an open transaction. If the lock is tried, a setting of the transaction carries the answer to the last
// statement, because database/sql only returns the result of that one.
const (
	save    = "SAVEPOINT gormlock; "
	release = "; RELEASE SAVEPOINT gormlock"
	hear    = release + "; SELECT FROM generate_series(1, current_setting('gormlock.answer')::int)"
	goBack  = "ROLLBACK TO SAVEPOINT gormlock" + release
)

// What these texts do to the transaction. Taking a lock writes no rows.
var (
	waitAndSave = sqltext.Text{Commands: savepoint(true)}
	tryAndSave  = sqltext.Text{Commands: savepoint(false)}
)

func savepoint(releasedLast bool) []sqltext.Command {
	return []sqltext.Command{{Verb: sqltext.Savepoint, Name: "gormlock"}, {Verb: sqltext.Release, Name: "gormlock", Last: releasedLast}}
}

// saved is the text that takes the locks in an open transaction. It sets a savepoint first, because a lock or the server may refuse. Trying a
// single lock never fails: its result is the answer.
func (r *Request) saved(ctx context.Context) *sqltext.Own {
	text := &sqltext.Own{Context: ctx, Text: waitAndSave}
	var taking string
	after := release
	if text.Answers = r.try && len(r.locks) == 1; text.Answers {
		taking, after, text.Text = keeping(r.answer()), hear, tryAndSave
	} else {
		taking = r.lockSQL()
	}
	text.Query = save + taking + after
	if statement, execute := r.prepared(true); execute != "" {
		text.Prepared = sqltext.Prepared{Name: statement.name, Definition: statement.definition, Execute: execute, Before: save, After: after, Undo: goBack}
	}
	return text
}

// undo rolls back to the savepoint, where the transaction was usable and held none of the request's locks.
func (r *Request) undo(ctx context.Context, tx Tx, failed error) error {
	verdict := r.verdict(ctx, failed)
	if errors.Is(verdict, ErrNotPostgres) {
		_ = rollBack(ctx, tx) // SQLite has executed the SAVEPOINT; a database that has not refuses this too
		return verdict
	}
	if ctx.Err() != nil || errors.Is(failed, sql.ErrTxDone) || sqlstate.Of(failed) == "" || noSavepoint(failed) {
		return verdict
	}
	if err := rollBack(ctx, tx); err != nil {
		return fmt.Errorf("%w (the transaction is lost: %w)", verdict, err)
	}
	return r.Named(ctx, failing{tx}, verdict)
}

func rollBack(ctx context.Context, tx Tx) error {
	_, err := tx.ExecContext(ctx, goBack)
	return err
}

// failing executes a statement that is meant to fail, and rolls back to a savepoint after it.
type failing struct{ tx Tx }

func (s failing) ExecContext(ctx context.Context, query string, _ ...any) (sql.Result, error) {
	result, err := s.tx.ExecContext(ctx, save+query)
	return result, errors.Join(err, rollBack(ctx, s.tx))
}

// noSavepoint reports whether the savepoint itself was refused, because the transaction was aborted before the call or there is
// none.
func noSavepoint(err error) bool {
	return sqlstate.Is(err, sqlstate.InFailedSQLTransaction, sqlstate.NoActiveSQLTransaction)
}

// answered reads the answer of answerSQL: the number of rows.
func (r *Request) answered(result sql.Result) error {
	answer, err := result.RowsAffected()
	switch {
	case err != nil:
		return &lockError{state: err, what: r.String(), detail: "the driver did not say whether it is held"}
	case answer == answerHeld:
		return nil
	case answer == answerSnapshot:
		return &lockError{state: ErrSnapshotTaken, what: r.String(), detail: "isolation level REPEATABLE READ or above"}
	case answer == answerStandby:
		return &lockError{state: ErrStandby, what: r.String()}
	default:
		return &lockError{state: ErrNotAcquired, what: r.String()}
	}
}
