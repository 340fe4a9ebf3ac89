package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// TestMain makes the test binary a writer where the program starts itself as one.
func TestMain(m *testing.M) {
	pgtest.Process(writerDSN, func() error { main(); return nil })
	pgtest.Main(m)
}

func TestFencedwriter(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := show(t.Context(), &out, pgtest.DSN(t)); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"the work of the second is gone", "first:  writes: refused: gormlock: reports id=1: token report/", "lost: FATAL"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output does not say %q:\n%s", want, &out)
		}
	}
}
