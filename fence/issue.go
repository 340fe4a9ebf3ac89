package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/gormlock/gormlock/internal/absent"
	"github.com/gormlock/gormlock/internal/otherdb"
	"github.com/gormlock/gormlock/internal/tokens"
)

// Queryer asks for rows: a *sql.DB, *sql.Conn or *sql.Tx.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

var errNilQueryer = errors.New("gormlock: fence: asked on a nil database, give it a *sql.DB, *sql.Conn or *sql.Tx")

// Issue issues the next token of a key. The caller must already hold the lock on
// key: otherwise the number says nothing about the order of holders.
//
// With a *sql.DB or *sql.Conn the token is committed when Issue returns. With a *sql.Tx it is issued when the transaction
// commits, and until then everybody else who wants a token of the same key waits. After an error there is no token to use,
// and its number may be skipped. On a database other than PostgreSQL the error is advisory.ErrNotPostgres, and nothing is
// issued.
func Issue(ctx context.Context, q Queryer, key Key) (Token, error) {
	if absent.Is(q) {
		return Token{}, errNilQueryer
	}
	t, err := For(key, 0)
	if err != nil {
		return Token{}, err
	}
	if other := otherdb.Under(q); other != nil {
		return Token{}, other.Refusal(issuing+t.Name, nil)
	}
	number, err := queryNumber(ctx, q, tokens.IssueOne, t.Space, t.ID, t.Name)
	if err != nil {
		return Token{}, explain(err, issuing, t)
	}
	t.Number = number
	return t, nil
}

// What is done for a token, for people.
const (
	issuing = "fencing token for "
	asking  = "latest fencing token of "
)

const latest = `SELECT token FROM gormlock_fence WHERE space = $1::smallint AND id = $2::bigint FOR SHARE`

// Latest returns the number of the latest token issued for the key of t, 0 when
// there is none. Its row stays share-locked until the transaction q ends, so a
// later token is not issued before that. The holder of t is superseded when the
// number is greater than its own.
func Latest(ctx context.Context, q Queryer, t Token) (int64, error) {
	if absent.Is(q) {
		return 0, errNilQueryer
	}
	if other := otherdb.Under(q); other != nil {
		return 0, other.Refusal(asking+t.Name, nil)
	}
	number, err := queryNumber(ctx, q, latest, t.Space, t.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, explain(err, asking, t)
	}
	return number, nil
}

// explain is the error of what was asked for t, with the cure where there is one.
func explain(err error, what string, t Token) error {
	if other := otherdb.Said(err); other != nil {
		return other.Refusal(what+t.Name, err)
	}
	return fmt.Errorf("gormlock: %s%s: %w", what, t.Name, tokens.Explain(err))
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
