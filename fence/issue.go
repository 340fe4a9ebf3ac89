package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Queryer asks for rows: a *sql.DB, *sql.Conn or *sql.Tx.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

const undefinedTable = "42P01"

// first is the least number of the server's timeline, next the one after f.token.
// The timeline is above bit 40, which leaves a key 10¹² tokens between
// two promotions. A standby promoted without the last commits of its primary would
// otherwise issue their numbers again.
const (
	first = `((('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint << 40) + 1)`
	next  = `greatest(f.token + 1, excluded.token)`
)

// issueOne waits for whoever has the row locked.
const issueOne = `WITH durable AS MATERIALIZED (` + Durable + `)
INSERT INTO gormlock_fence AS f (space, id, name, token)
SELECT $1::smallint, $2::bigint, $3::text, ` + first + ` FROM durable
ON CONFLICT (space, id) DO UPDATE SET token = ` + next + `, name = excluded.name
RETURNING token`

// Issue gives the next token of a key. The caller holds the lock on key already,
// or the number says nothing about the order of holders.
//
// With a *sql.DB or *sql.Conn the token is committed when Issue returns. With a
// *sql.Tx it is issued when the transaction commits, and until then everybody who
// wants a token of the same key waits. After an error no token is to be used, but
// the number may have been passed over.
func Issue(ctx context.Context, q Queryer, key Key) (Token, error) {
	t, err := For(key, 0)
	if err != nil {
		return Token{}, err
	}
	number, err := queryNumber(ctx, q, issueOne, t.Space, t.ID, t.Name)
	if err != nil {
		return Token{}, fmt.Errorf("gormlock: fencing token for %s: %w", t.Name, explain(err))
	}
	t.Number = number
	return t, nil
}

const latest = `SELECT token FROM gormlock_fence WHERE space = $1::smallint AND id = $2::bigint FOR SHARE`

// Latest returns the number of the latest token issued for the key of t, 0 when
// there is none. Its row stays share-locked until the transaction q ends, so a
// later token is issued after that and not before. The holder of t is superseded
// when the number is greater than its own.
func Latest(ctx context.Context, q Queryer, t Token) (int64, error) {
	number, err := queryNumber(ctx, q, latest, t.Space, t.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("gormlock: latest fencing token of %s: %w", t.Name, explain(err))
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

// explain adds the cure to the error of a missing table.
func explain(err error) error {
	var state interface{ SQLState() string }
	if errors.As(err, &state) && state.SQLState() == undefinedTable {
		return fmt.Errorf("%w (fence.Migrate creates the table)", err)
	}
	return err
}
