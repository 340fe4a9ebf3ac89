package pgxlock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/absent"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/lockkey"
)

// Acquire takes the locks in the transaction tx, all or none, in one round trip. On an error the transaction is as
// usable as before, unless the connection is gone. If ctx has ended, pgx closes the connection.
//
// In a nested transaction (tx.Begin) the locks end when that is rolled back, otherwise with the outermost one.
func Acquire(ctx context.Context, tx pgx.Tx, keys []lockkey.Key, opts ...advisory.Option) error {
	request, err := lockrequest.New(keys, opts...)
	if err != nil {
		return err
	}
	if absent.Is(tx) {
		return fmt.Errorf("%w: a nil transaction, give it what Begin returned", advisory.ErrOption)
	}
	return request.Acquire(ctx, executor{tx})
}

// executor is a transaction of pgx as database/sql has them.
type executor struct{ tx pgx.Tx }

func (e executor) ExecContext(ctx context.Context, query string, _ ...any) (sql.Result, error) {
	tag, err := e.tx.Exec(ctx, query)
	return driver.RowsAffected(tag.RowsAffected()), err
}
