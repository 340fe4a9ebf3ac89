package memory

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// keyless are the structs whose keys were taken away because their rows were never committed. GORM takes a struct without a key for the name of
// its model. So a write of such a struct under conditions would be one of all rows that they find.
var keyless struct {
	count    atomic.Int64
	mu       sync.Mutex
	at       map[placeOf]takenKey
	sweeping bool
}

// takenKey is a struct whose key was taken away.
type takenKey struct {
	model *model.Model
	alive weak.Pointer[byte] // when the struct is gone, another one may be at its address
	empty bool               // it had nothing else
}

// hasGone reports whether the struct no longer exists.
func (t takenKey) hasGone() bool { return t.alive.Value() == nil }

// HasKeyless reports whether there may be such structs.
func HasKeyless() bool { return keyless.count.Load() > 0 }

// tookKey notes that the key of a struct was taken away, if it has none now.
func tookKey(m *model.Model, row reflect.Value) {
	at, ok := whereIs(row)
	if !ok || !isUnkeyed(m.Schema, row) {
		return
	}
	keyless.mu.Lock()
	defer keyless.mu.Unlock()
	if keyless.at == nil {
		keyless.at = map[placeOf]takenKey{}
	}
	keyless.at[at] = takenKey{m, weak.Make((*byte)(row.Addr().UnsafePointer())), isEmpty(m, row)}
	keyless.count.Store(int64(len(keyless.at)))
	if !keyless.sweeping {
		keyless.sweeping = true
		time.AfterFunc(sweepEvery, sweepKeyless)
	}
}

// IsKeyless reports whether the key of a struct was taken away. It is no longer so if the struct got a key again, or if the program has emptied it.
func IsKeyless(row reflect.Value) bool {
	at, ok := whereIs(row)
	if !ok || !HasKeyless() {
		return false
	}
	keyless.mu.Lock()
	defer keyless.mu.Unlock()
	one, is := keyless.at[at]
	if is && (one.hasGone() || !isUnkeyed(one.model.Schema, row) || !one.empty && isEmpty(one.model, row)) {
		forgetKeyless(at)
		return false
	}
	return is
}

// GotKey notes that a struct may have got a key.
func GotKey(row reflect.Value) { IsKeyless(row) }

// GotKeys does the same for all structs.
func (s *Structs) GotKeys() {
	for i := 0; i < s.Count && HasKeyless(); i++ {
		GotKey(s.Row(i))
	}
}

func forgetKeyless(at placeOf) {
	delete(keyless.at, at)
	keyless.count.Store(int64(len(keyless.at)))
}

// sweepKeyless forgets the structs that are gone, until none is left.
func sweepKeyless() {
	keyless.mu.Lock()
	defer keyless.mu.Unlock()
	for at, one := range keyless.at {
		if one.hasGone() {
			forgetKeyless(at)
		}
	}
	if keyless.sweeping = len(keyless.at) > 0; keyless.sweeping {
		time.AfterFunc(sweepEvery, sweepKeyless)
	}
}

// isEmpty reports whether all columns of a struct are zero, except a version that shows no row.
func isEmpty(m *model.Model, row reflect.Value) bool {
	return !slices.ContainsFunc(m.Schema.Fields, func(field *schema.Field) bool {
		if field.DBName == "" || m.Column != nil && field == m.Column.Field && m.Column.Unset(m.Column.Read(row)) {
			return false
		}
		place := statement.Place(field, row)
		return place.IsValid() && !place.IsZero()
	})
}
