package lease_test

import (
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/torture"
)

func TestMain(m *testing.M) {
	pgtest.MoreAtOnce(3) // tests here wait for leases to run out, more than they compute; each has workers that connect again and again
	torture.Main(m, fight)
}
