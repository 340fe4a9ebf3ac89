package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// TestMain makes the test binary a node where the program starts itself as one.
func TestMain(m *testing.M) {
	pgtest.Process(nodeName, func() error { main(); return nil })
	pgtest.Main(m)
}

func TestSingleton(t *testing.T) {
	t.Setenv("DATABASE_URL", pgtest.DSN(t))
	var out bytes.Buffer
	if err := show(t.Context(), &out, 2, 100*time.Millisecond); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"it stepped down", "it was killed", "its session ended", "lost: FATAL: terminating connection", "never two"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output does not say %q:\n%s", want, &out)
		}
	}
}
