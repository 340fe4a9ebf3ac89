package journal

import (
	"context"
	"sync/atomic"

	"github.com/gormlock/gormlock/internal/lockrequest"
)

// Maps is what the maps share that one call of Association(…).Append stores: the locks that the call asks for, and the error of the one
// that was refused.
type Maps struct {
	Request *lockrequest.Request
	refused atomic.Pointer[error]
}

// mapsKey finds Maps in the context of the statement that asks for the locks. Sessions that GORM makes of it have the context, and not the
// clause.
type mapsKey struct{}

// ForMaps is ctx with the locks for maps.
func ForMaps(ctx context.Context, request *lockrequest.Request) context.Context {
	return context.WithValue(ctx, mapsKey{}, &Maps{Request: request})
}

// MapsOf is nil where nothing asks for locks.
func MapsOf(ctx context.Context) *Maps {
	m, _ := ctx.Value(mapsKey{}).(*Maps)
	return m
}

// NoteRefused notes that a map was refused, and reports whether the maps behind it will be too. GORM goes on with them, and returns only the
// last one's error.
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
