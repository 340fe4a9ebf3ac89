package sessionlock

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/tokens"
	"github.com/gormlock/gormlock/internal/waits"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

const (
	maxKeys    = 4096 // in a batch: two batches fit into the socket's buffer, so a write never blocks
	maxRepairs = 64
	maxTokens  = 1024
)

// batch is what one write sends: some queries, each with its own Sync, so that each succeeds or fails alone. First the
// goroutine that writes it may use it, then the one that reads its answer.
type batch struct {
	queries []query
	sentAt  time.Time
	keys    int // how many it has
	at      int // the query whose answer is read
}

// query is one statement of a batch, and its answer.
type query struct {
	statement wire.Statement
	entries   []*entry
	again     bool // of an unlock: the key may not be held
	retries   int
	variant   wire.Statement // of a wait: that of Unlock
	limit     time.Duration  // of a wait
	before    waits.Before   // of a wait
	tokens    map[holder.Place]*tokenRequest

	refused []holder.Place // the keys for which the function returned false
	warned  bool           // a commit that did not wait for the standby
	err     *pgconn.PgError
}

// encode adds the messages of b.
func (b *batch) encode(to *wire.Messages) {
	for i := range b.queries {
		q := &b.queries[i]
		switch {
		case q.statement < wire.Listed:
			wire.AddListed(to, q.statement, q.entries)
		case q.tokens != nil:
			to.AddIssue(q.statement, q.tokenArgs())
		case q.statement == wire.Wait:
			to.AddWait(q.variant, q.entries[0].id, q.limit, q.before)
		case q.statement == wire.UnlockAll:
			to.AddUnlockAll()
		}
		to.AddSync()
	}
}

func (q *query) tokenArgs() [3]string {
	keys := make([]tokens.Key, 0, len(q.tokens))
	for at, r := range q.tokens {
		keys = append(keys, tokens.Key{Space: at.Space, ID: at.ID, Name: r.token.Name})
	}
	return tokens.BatchArgs(keys)
}

// take reads one message of the answer and reports whether it was the last.
func (b *batch) take(message pgproto3.BackendMessage) (done bool, err error) {
	if b.at >= len(b.queries) {
		return true, fmt.Errorf("an answer to nothing: %T", message)
	}
	q := &b.queries[b.at]
	switch m := message.(type) {
	case *pgproto3.DataRow:
		return false, q.row(m.Values)
	case *pgproto3.ErrorResponse:
		q.err = pgconn.ErrorResponseToPgError(m)
	case *pgproto3.NoticeResponse:
		q.warned = q.warned || m.SeverityUnlocalized == "WARNING"
	case *pgproto3.ReadyForQuery:
		b.at++
	}
	return b.at == len(b.queries), nil
}

func (q *query) row(values [][]byte) error {
	switch {
	case q.statement < wire.Listed:
		at, err := wire.ListedRow(q.statement, values)
		q.refused = append(q.refused, at)
		return err
	case q.tokens != nil:
		at, number, err := wire.TokenRow(values)
		if r := q.tokens[at]; r != nil {
			r.number = number
		}
		return err
	}
	return nil
}

// isWait reports whether a query of b waits for a lock.
func (b *batch) isWait() bool {
	for i := range b.queries {
		if b.queries[i].statement == wire.Wait {
			return true
		}
	}
	return false
}
