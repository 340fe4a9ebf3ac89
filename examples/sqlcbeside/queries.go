package main

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The queries are as sqlc writes them for pgx.

// DBTX is what queries run on.
type DBTX interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Queries are the queries of this program.
type Queries struct{ db DBTX }

// NewQueries returns the queries on db.
func NewQueries(db DBTX) *Queries { return &Queries{db} }

// WithTx returns the queries in a transaction.
func (q *Queries) WithTx(tx pgx.Tx) *Queries { return &Queries{tx} }

const lastNumber = `-- name: LastNumber :one
SELECT coalesce(max(number), 0)::bigint FROM invoices`

// LastNumber is the number of the last invoice.
func (q *Queries) LastNumber(ctx context.Context) (int64, error) {
	var number int64
	err := q.db.QueryRow(ctx, lastNumber).Scan(&number)
	return number, err
}

const addInvoice = `-- name: AddInvoice :exec
INSERT INTO invoices (number, maker) VALUES ($1, $2)`

// AddInvoice stores an invoice.
func (q *Queries) AddInvoice(ctx context.Context, number int64, maker string) error {
	_, err := q.db.Exec(ctx, addInvoice, number, maker)
	return err
}
