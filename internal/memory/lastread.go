package memory

import (
	"hash/maphash"
	"reflect"
	"sync"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
)

// lastRead holds when queries outside of transactions read into structs: what such a struct has is committed, whatever becomes of a transaction
// that had it before. The table is of one size, and a newer read may displace an older one. Then the older one is not known, and its struct counts
// as not read where that matters.
var lastRead [64]struct {
	mu  sync.Mutex
	all [64]readInto
}

// readInto is such a read.
type readInto struct {
	place  placeOf
	is     held
	moment int64
}

var seed = maphash.MakeSeed()

// NoteRead notes such a read, if a transaction is open that may have had the struct before.
func NoteRead(m *model.Model, row reflect.Value) {
	at, ok := whereIs(row)
	if !ok || m.Column == nil || row.Type() != m.Schema.ModelType || isUnkeyed(m.Schema, row) {
		return
	}
	n := maphash.Comparable(seed, at)
	part := &lastRead[n%64]
	part.mu.Lock()
	defer part.mu.Unlock()
	part.all[n/64%64] = readInto{at, heldIn(m, row), journal.Moment()}
}

// lastReadInto is when such a query last read into a struct; 0: that is not known, or the struct is at another version or of another row by now.
func lastReadInto(m *model.Model, row reflect.Value) int64 {
	at, ok := whereIs(row)
	if !ok || m.Column == nil {
		return 0
	}
	n := maphash.Comparable(seed, at)
	part := &lastRead[n%64]
	part.mu.Lock()
	defer part.mu.Unlock()
	if one := &part.all[n/64%64]; one.place == at && heldIn(m, row).is(one.is) {
		return one.moment
	}
	return 0
}
