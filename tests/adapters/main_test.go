// Package adapters runs other people's tools with our locks.
package adapters

import (
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) {
	pgtest.Process(schedulerDSN, runScheduler)
	pgtest.Main(m)
}
