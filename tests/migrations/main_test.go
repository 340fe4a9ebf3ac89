// Package migrations tests the checks of models at start, and migrations of several processes at once.
package migrations_test

import (
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
