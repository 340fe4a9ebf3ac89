package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// TestMain makes the test binary a worker where the program starts itself as one.
func TestMain(m *testing.M) {
	pgtest.Process(workerName, func() error { main(); return nil })
	pgtest.Main(m)
}

func TestJobqueue(t *testing.T) {
	t.Setenv("DATABASE_URL", pgtest.DSN(t))
	var out bytes.Buffer
	err := show(t.Context(), &out, options{jobs: 600, processes: 2, goroutines: 3, kills: 1, lease: 300 * time.Millisecond})
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"kill -9", "600 jobs in", "none was done twice", "w3"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output does not say %q:\n%s", want, &out)
		}
	}
}
