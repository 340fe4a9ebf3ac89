package work

import (
	"sync"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/journal"
)

// attempt is the state that a handler and its worker share. It is a value of the handler's context.
type attempt struct {
	of         *engine
	id         int64        // of the job
	completing atomic.Bool  // the handler has called Complete
	completed  atomic.Bool  // that call is committed: there is no lease any more
	open       atomic.Int32 // how many calls of Complete are neither committed nor rolled back
}

// keep follows the transaction in which Complete has written the row, to know how it ends.
func (a *attempt) keep(tx *gorm.DB) {
	j := journal.Of(tx.Statement)
	if j == nil {
		return
	}
	a.open.Add(1)
	ended := sync.OnceFunc(func() { a.open.Add(-1) })
	j.Record(func() {
		ended()
		poke(a.of.undone)
	})
	j.AfterCommit(func() {
		a.completed.Store(true)
		ended()
	})
}

type attemptKey struct{}

// runs are the running engines of this process, by owner.
var runs sync.Map

// attemptOf returns the attempt for which Complete is called, or nil if this process has none. The struct need not be the one that the handler got.
// So attemptOf first looks at the context of tx: if it is a handler's, and the job is that handler's, it is that attempt. Otherwise ClaimedBy names
// the attempt: a claim belongs to one run, and so to one table in one database. If ClaimedBy was not read, it is the attempt that holds the row.
// others is true if the context is that of the handler of another job.
func attemptOf(tx *gorm.DB, t *table, j *Job) (found *attempt, others bool) {
	pool, named := journal.Database(tx.Statement), j.ClaimedBy != ""
	a, _ := tx.Statement.Context.Value(attemptKey{}).(*attempt)
	if a != nil && a.id == j.ID && a.of.t.quoted == t.quoted && (a.of.db.DB == pool || !named) {
		return a, false
	}
	runs.Range(func(_, run any) bool {
		e := run.(*engine) //nolint:forcetypeassert // stored by Worker.engine
		e.mu.Lock()
		defer e.mu.Unlock()
		it := e.held[j.ID]
		if it != nil && (it.claim == j.ClaimedBy || !named && e.t.quoted == t.quoted && e.db.DB == pool) {
			found = it.shared
		}
		return found == nil
	})
	return found, a != nil && a != found
}
