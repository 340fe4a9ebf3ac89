package journal

import (
	"context"
	"sync/atomic"

	"github.com/gormlock/gormlock/internal/lockrequest"
)

// Maps is shared by the maps that one call of Association(…).Append stores: the locks that the call asks for, and the error of the first map
// that was refused.
type Maps struct {
	Request *lockrequest.Request
	refused atomic.Pointer[error]
}

// mapsKey finds Maps in the context of the statement that asks for the locks. GORM passes the context on to the sessions that it makes for
// the maps, but not the clause.
type mapsKey struct{}

// ForMaps is ctx with the locks for maps.
func ForMaps(ctx context.Context, request *lockrequest.Request) context.Context {
	return context.WithValue(ctx, mapsKey{}, &Maps{Request: request})
}

// MapsOf returns the Maps in ctx, nil if nothing asks for locks.
func MapsOf(ctx context.Context) *Maps {
	m, _ := ctx.Value(mapsKey{}).(*Maps)
	return m
}

// NoteRefused notes that a map was refused, and reports whether the following maps will be refused too. GORM goes on with them, and returns
// only the error of the last one.
func (m *Maps) NoteRefused(err error) bool {
	if m != nil {
		m.refused.CompareAndSwap(nil, &err)
	}
	return m != nil
}

// Refused is the error of the first map that was refused.
func (m *Maps) Refused() error {
	if err := m.refused.Load(); err != nil {
		return *err
	}
	return nil
}
