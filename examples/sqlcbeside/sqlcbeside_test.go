package main

import (
	"bytes"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestSQLCBeside(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	twice, err := show(t.Context(), &out, pgtest.DSN(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if twice == 0 {
		t.Errorf("no number was given twice without the lock:\n%s", &out)
	}
}
