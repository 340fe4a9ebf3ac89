package stand

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/rowlock"
	"github.com/gormlock/gormlock/internal/wiretap"
)

// RoundTrips is how many round trips run makes through proxy when everything it uses is warm, and what it executes.
func RoundTrips(t testing.TB, proxy *wiretap.Proxy, run func() error) (n int, executed []string) {
	t.Helper()
	for range 2 {
		proxy.Reset()
		if err := run(); err != nil {
			t.Fatal(err)
		}
		executed = proxy.Statements()
		n = proxy.RoundTrips()
	}
	for _, sql := range executed {
		if sql == "-- ping" { // the driver checks whether a connection that was idle for a second is alive
			n--
		}
	}
	return n, executed
}

// Recorder is a pool that remembers its statements.
type Recorder struct {
	gorm.ConnPool
	mu    sync.Mutex
	texts []string
	Asked int   // how often the server was asked whether the rows of a relation can be locked: once of each table
	Args  []any // of the last query
}

// Recorded is a session of db whose statements are recorded. What db begins is not.
func Recorded(db *gorm.DB) (*gorm.DB, *Recorder) {
	session := db.Session(&gorm.Session{NewDB: true})
	session = session.Session(&gorm.Session{Initialized: true})
	r := &Recorder{ConnPool: session.Statement.ConnPool}
	if tx, ok := r.ConnPool.(gorm.TxCommitter); ok {
		session.Statement.ConnPool = struct {
			*Recorder
			gorm.TxCommitter
		}{r, tx}
	} else {
		session.Statement.ConnPool = r
	}
	return session.Session(&gorm.Session{}), r
}

func (r *Recorder) record(query string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if query == rowlock.AskLockable || query == rowlock.AskTableRows || query == rowlock.AskReads {
		r.Asked++
		return
	}
	r.texts = append(r.texts, query)
}

// Seen are the texts that the pool was asked, in their order, without those that Asked counts.
func (r *Recorder) Seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.texts)
}

// ExecContext implements gorm.ConnPool.
func (r *Recorder) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	r.record(query)
	return r.ConnPool.ExecContext(ctx, query, args...)
}

// QueryContext implements gorm.ConnPool.
func (r *Recorder) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	r.record(query)
	r.Args = args
	return r.ConnPool.QueryContext(ctx, query, args...)
}

// QueryRowContext implements gorm.ConnPool.
func (r *Recorder) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	r.record(query)
	return r.ConnPool.QueryRowContext(ctx, query, args...)
}
