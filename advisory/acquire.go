package advisory

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/gormlock/gormlock/internal/absent"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/lockkey"
)

// Tx is an open transaction: a *sql.Tx, or a wrapper of one. Only ExecContext is called. Because it has Commit and
// Rollback, a *sql.DB or *sql.Conn, where a lock would end at once, does not compile.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	Commit() error
	Rollback() error
}

// Acquire takes the locks in the transaction tx, all or none, in one round trip. On an error the transaction is as
// usable as before, unless ctx has ended or the connection is gone.
func Acquire(ctx context.Context, tx Tx, keys []lockkey.Key, opts ...Option) error {
	request, err := lockrequest.New(keys, opts...)
	if err != nil {
		return err
	}
	if absent.Is(tx) {
		return fmt.Errorf("%w: Acquire in a nil transaction, give it the *sql.Tx that BeginTx returned", ErrOption)
	}
	return request.Acquire(ctx, tx)
}
