package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/gormlock/gormlock/internal/tokens"
)

// Queryer asks for rows: a *sql.DB, *sql.Conn or *sql.Tx.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Issue issues the next token of a key. The caller must already hold the lock on
// key: otherwise the number says nothing about the order of holders.
//
// With a *sql.DB or *sql.Conn the token is committed when Issue returns. With a
// *sql.Tx it is issued when the transaction commits, and until then everybody
// else who wants a token of the same key waits. After an error do not use a
// token; its number may be left out.
func Issue(ctx context.Context, q Queryer, key Key) (Token, error) {
	t, err := For(key, 0)
	if err != nil {
		return Token{}, err
	}
	number, err := queryNumber(ctx, q, tokens.IssueOne, t.Space, t.ID, t.Name)
	if err != nil {
		return Token{}, fmt.Errorf("gormlock: fencing token for %s: %w", t.Name, tokens.Explain(err))
	}
	t.Number = number
	return t, nil
}

const latest = `SELECT token FROM gormlock_fence WHERE space = $1::smallint AND id = $2::bigint FOR SHARE`

// Latest returns the number of the latest token issued for the key of t, 0 when
// there is none. Its row stays share-locked until the transaction q ends, so a
// later token is not issued before that. The holder of t is superseded when the
// number is greater than its own.
func Latest(ctx context.Context, q Queryer, t Token) (int64, error) {
	number, err := queryNumber(ctx, q, latest, t.Space, t.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("gormlock: latest fencing token of %s: %w", t.Name, tokens.Explain(err))
	}
	return number, nil
}

func queryNumber(ctx context.Context, q Queryer, query string, args ...any) (number int64, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		if rows.Err() != nil {
			return 0, rows.Err()
		}
		return 0, sql.ErrNoRows
	}
	if err := rows.Scan(&number); err != nil {
		return 0, err
	}
	return number, rows.Err()
}
