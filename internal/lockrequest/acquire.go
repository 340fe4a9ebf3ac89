package lockrequest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// Tx is what an open transaction is asked for here.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Acquire takes the locks in the transaction tx, all or none, in one round trip. On an error the transaction is as
// usable as it was, unless ctx has ended or the connection is gone.
func (r *Request) Acquire(ctx context.Context, tx Tx) error {
	if err := ctx.Err(); err != nil {
		return cause.Add(ctx, &lockError{state: err, what: r.String(), detail: "not asked for"})
	}
	if r.try && len(r.locks) == 1 {
		result, err := tx.ExecContext(ctx, r.savedAnswerSQL())
		if err != nil {
			return r.undo(ctx, tx, err)
		}
		return r.answered(result)
	}
	_, err := tx.ExecContext(ctx, "SAVEPOINT gormlock; "+r.lockSQL()+"; RELEASE SAVEPOINT gormlock")
	if err == nil {
		return nil
	}
	return r.undo(ctx, tx, err)
}

// undo takes the transaction back to the savepoint, where it was usable and held none of the request's locks.
func (r *Request) undo(ctx context.Context, tx Tx, failed error) error {
	verdict := r.verdict(ctx, failed)
	if errors.Is(verdict, ErrNotPostgres) {
		_ = rollBack(ctx, tx) // SQLite has executed the savepoint; where nothing was, this is refused too
		return verdict
	}
	if ctx.Err() != nil || errors.Is(failed, sql.ErrTxDone) || sqlstate.Of(failed) == "" || noSavepoint(failed) {
		return verdict
	}
	if err := rollBack(ctx, tx); err != nil {
		return fmt.Errorf("%w (the transaction is lost: %w)", verdict, err)
	}
	return r.Named(ctx, saved{tx}, verdict)
}

func rollBack(ctx context.Context, tx Tx) error {
	_, err := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT gormlock; RELEASE SAVEPOINT gormlock")
	return err
}

// saved executes under a savepoint what is to fail.
type saved struct{ tx Tx }

func (s saved) ExecContext(ctx context.Context, query string, _ ...any) (sql.Result, error) {
	result, err := s.tx.ExecContext(ctx, "SAVEPOINT gormlock; "+query)
	return result, errors.Join(err, rollBack(ctx, s.tx))
}

// noSavepoint reports that the savepoint itself was refused: the transaction was aborted before the call, or there is
// none.
func noSavepoint(err error) bool {
	return sqlstate.Is(err, sqlstate.InFailedSQLTransaction, sqlstate.NoActiveSQLTransaction)
}

// answered reads the answer of answerSQL, the number of its rows.
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
