package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestHibernateapp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := show(t.Context(), &out, pgtest.DSN(t)); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	text := out.String()
	if !strings.HasPrefix(text, "A stand-in for Java") || strings.Count(text, "it adds up") != 8 || !strings.Contains(text, "The largest order comes to") {
		t.Errorf("it says\n%s", text)
	}
}
