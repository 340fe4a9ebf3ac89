package journal

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
)

// drawers hold the journals of open transactions, by the pool of the transaction in GORM's statements. There are several
// maps, so that goroutines seldom wait for each other. A [sync.Map] would allocate for each transaction.
var drawers [32]drawer

var seed = maphash.MakeSeed()

type drawer struct {
	mu       sync.RWMutex
	journals map[gorm.ConnPool]*journal
	mayEnd   atomic.Int64 // number of journals of transactions whose ctx can end
	open     atomic.Int64 // number of all journals
}

func drawerOf(pool gorm.ConnPool) *drawer {
	return &drawers[maphash.Comparable(seed, pool)%uint64(len(drawers))]
}

func (d *drawer) get(pool gorm.ConnPool) *journal {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.journals[pool]
}

// put forgets the journal of pool where j is nil.
func (d *drawer) put(pool gorm.ConnPool, j *journal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.journals[pool]; old != nil && old.opening.MayEnd() {
		d.mayEnd.Add(-1)
	}
	if j != nil && j.opening.MayEnd() {
		d.mayEnd.Add(1)
	}
	switch {
	case j == nil:
		delete(d.journals, pool)
	case d.journals == nil:
		d.journals = map[gorm.ConnPool]*journal{pool: j}
	default:
		d.journals[pool] = j
	}
	d.open.Store(int64(len(d.journals)))
}

// HasOpen reports whether there is a transaction whose end may restore structs.
func HasOpen() bool {
	for i := range drawers {
		if drawers[i].open.Load() > 0 {
			return true
		}
	}
	return false
}

// ended are the journals of transactions whose ctx has ended.
func (d *drawer) ended() (all []*journal) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, j := range d.journals {
		if j.opening.HasEnded() {
			all = append(all, j)
		}
	}
	return all
}
