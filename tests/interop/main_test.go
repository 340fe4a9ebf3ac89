// Package interop tests gormlock on tables that a program in another language writes at the same time: Rails by a real
// ActiveRecord, Hibernate by the statements that it sends.
package interop

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// open opens GORM with the plugin on the test's own schema. Rails and Hibernate keep UTC in columns without a zone.
func open(t *testing.T) *gorm.DB {
	t.Helper()
	plugin := gormlock.New()
	t.Cleanup(func() {
		if err := plugin.Close(); err != nil {
			t.Error(err)
		}
	})
	inUTC := pgtest.Config(func(c *gorm.Config) { c.NowFunc = func() time.Time { return time.Now().UTC() } })
	return pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(plugin), inUTC)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustBeStale(t *testing.T, err error) *gormlock.StaleError {
	t.Helper()
	var stale *gormlock.StaleError
	if !errors.Is(err, gormlock.ErrStale) || !errors.As(err, &stale) {
		t.Fatalf("want a stale version, got %v", err)
	}
	return stale
}

func mustBeGone(t *testing.T, err error) {
	t.Helper()
	if e := mustBeStale(t, err); !e.Deleted {
		t.Errorf("want a row that is gone, got %v", e)
	}
}

func mustStale(t *testing.T, err error) {
	t.Helper()
	if e := mustBeStale(t, err); e.Deleted {
		t.Errorf("want a row that changed, got %v", e)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
