package gormlocktest

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/otherdb"
	"github.com/gormlock/gormlock/lockkey"
)

// Rival is another session that holds an advisory lock.
type Rival struct {
	tx   *sql.Tx
	once sync.Once
}

// Hold lets a rival take the advisory lock, in a transaction on a connection of the pool. The rival holds it until
// [Rival.Release], or the end of the test. Options of package advisory make the lock shared, or limit the wait. If the
// rival does not get the lock, the test ends.
func Hold(t testing.TB, pool *sql.DB, key lockkey.Key, opts ...advisory.Option) *Rival {
	t.Helper()
	mustBeThere(t, pool)
	if other := otherdb.Under(pool); other != nil {
		t.Fatal(other.Refusal("lock "+key.String(), nil))
	}
	tx, err := pool.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &Rival{tx: tx}
	t.Cleanup(r.Release)
	if err := advisory.Acquire(t.Context(), tx, []lockkey.Key{key}, opts...); err != nil {
		t.Fatal(err)
	}
	return r
}

// Release ends the rival's transaction, and with it its lock. A second call does nothing.
func (r *Rival) Release() { r.once.Do(func() { _ = r.tx.Rollback() }) }
