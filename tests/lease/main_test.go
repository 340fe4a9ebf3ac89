package lease_test

import (
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/torture"
)

func TestMain(m *testing.M) {
	pgtest.MoreAtOnce(8) // tests here wait for leases to run out, more than they compute
	torture.Main(m, fight)
}
