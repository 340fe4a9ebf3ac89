package lease_test

import (
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// L16: many leases of one process, renewed together: none is lost, and the table does not
// grow, because each renewal is written beside the row it replaces.
func TestTorture_manyLeasesOfOneProcess(t *testing.T) {
	t.Parallel()
	db := tables(t, pgtest.MaxConns(8))
	m := open(t, db)
	n := pgtest.Rounds(1_000, 10_000)
	leases := make([]*lease.Lease, n)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := g; i < n; i += 8 {
				l, err := m.Acquire(t.Context(), lockkey.Of("many", i), 15*time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				leases[i] = l
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	size := func() (bytes int64) {
		if err := db.QueryRowContext(t.Context(), "SELECT pg_relation_size('gormlock_lease')").Scan(&bytes); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	before := size()
	until := time.Now().Add(time.Duration(pgtest.Rounds(0, 60)) * time.Second)
	for done := 0; done < 3 || time.Now().Before(until); done++ {
		leases[0].Until()
		for _, l := range leases {
			if err := l.Renew(t.Context()); done == 0 && err != nil || l.Err() != nil {
				t.Fatalf("%v, %v", err, l.Err())
			}
			if done > 0 {
				break
			}
		}
		<-time.After(time.Duration(pgtest.Rounds(100, 5_000)) * time.Millisecond)
	}
	for _, l := range leases {
		if err := l.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if after := size(); after > 2*before {
		t.Errorf("the table grew from %d to %d bytes", before, after)
	}
}
