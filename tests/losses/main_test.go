// Package losses tests what a write is told whose context ended with a lock: by real losses of session locks and leases.
package losses_test

import (
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
