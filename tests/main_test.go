package tests

import (
	"os"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(tortureJob) != "" {
		os.Exit(runTortureJob())
	}
	pgtest.Main(m)
}
