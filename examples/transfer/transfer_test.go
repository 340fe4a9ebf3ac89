package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestTransfer(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	deadlocks, err := show(t.Context(), &out, pgtest.DSN(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if deadlocks == 0 {
		t.Errorf("locking one by one showed no deadlock:\n%s", &out)
	}
	if !strings.Contains(out.String(), "as before") {
		t.Error(out.String())
	}
}
