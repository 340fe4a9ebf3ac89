package lookalike_test

import (
	"context"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/lookalike"
	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// What the server is asked is what NameOf says: on each of the texts, and with each name allowed.
func TestCondition(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	refuses := func(version string, allowed ...string) (refused bool) {
		quoted := "'" + strings.ReplaceAll(version, "'", "''") + "'"
		text := strings.ReplaceAll(lookalike.Condition(allowed), "version()", quoted)
		if err := conn.QueryRow(context.Background(), "SELECT "+text).Scan(&refused); err != nil {
			t.Fatal(err, text)
		}
		return refused
	}
	for name, texts := range versions {
		for _, text := range texts {
			if got := refuses(text); got != (name != "") {
				t.Errorf("%s: refused %v", text, got)
			}
			if name != "" && (refuses(text, name) || refuses(text, "Another", strings.ToLower(name)) || !refuses(text, "Another")) {
				t.Errorf("%s: allowed by name", text)
			}
		}
	}
	// The server at hand is one that needs nothing.
	var refused bool
	if err := conn.QueryRow(context.Background(), "SELECT "+lookalike.Condition(nil)).Scan(&refused); err != nil || refused {
		t.Errorf("PostgreSQL is refused: %v", err)
	}
	// It says its name in an error.
	_, err := conn.Exec(context.Background(), "SELECT "+lookalike.Raise)
	var version string
	if err := conn.QueryRow(context.Background(), "SELECT version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if err == nil || lookalike.Read(err.Error()) != version {
		t.Errorf("read %q of %v", lookalike.Read(err.Error()), err)
	}
}
