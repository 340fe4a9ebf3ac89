// Package lostupdate tests that no write of a versioned row is lost: by many writers of one row, and by random programs
// that are compared with a model.
package lostupdate

import (
	"io"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// open opens GORM with the plugin on the test's own schema.
func open(t *testing.T, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	plugin := gormlock.New()
	closeAtEnd(t, plugin)
	return pgtest.Open(t, append(opts, pgtest.Schema(), pgtest.Plugin(plugin))...)
}

func closeAtEnd(t *testing.T, c io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
