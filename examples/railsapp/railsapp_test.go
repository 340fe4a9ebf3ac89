package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/examples/internal/place"
	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Without Ruby this test fails, as those in tests/interop do: make rails, or GORMLOCK_WITHOUT_RAILS=1 to leave it out.
func TestRailsapp(t *testing.T) {
	t.Parallel()
	if !hasRails(t.Context()) {
		if os.Getenv("GORMLOCK_WITHOUT_RAILS") != "" {
			t.Skip("left out by GORMLOCK_WITHOUT_RAILS: there is no ActiveRecord here")
		}
		t.Fatal("it needs Ruby with ActiveRecord and pg: make rails")
	}
	p, err := newPlace(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Leave() //nolint:errcheck // the database goes with the test
	ruby, err := startRails(t.Context(), p.Config)
	if err != nil {
		t.Fatal(err)
	}
	assertAddsUp(t, p, ruby, "Rails (ActiveRecord "+ruby.version+") and Go")
	if err := ruby.close(); err != nil {
		t.Error(err)
	}

	// What the stand-in sends is what was sent just now.
	if !strings.HasPrefix(ruby.version, "6.1.") {
		t.Logf("the statements of the stand-in are of ActiveRecord 6.1, this is %s", ruby.version)
		return
	}
	for _, sql := range []string{
		createAccounts, createInvoices, begin, commit, rollback, find, lockFound, update, maximum, insert, tryLock, unlock,
	} {
		if !slices.Contains(ruby.sent, sql) {
			t.Errorf("ActiveRecord did not send %s; it sent\n%s", sql, strings.Join(ruby.sent, "\n"))
		}
	}
}

func TestRailsapp_withoutRuby(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := program(t.Context(), &out, pgtest.DSN(t), true); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	assertSays(t, &out, "A stand-in for Rails")
}

func assertAddsUp(t *testing.T, p *place.Place, other rails, first string) {
	t.Helper()
	var out bytes.Buffer
	if err := show(t.Context(), &out, p, other); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	assertSays(t, &out, first)
}

func assertSays(t *testing.T, out *bytes.Buffer, first string) {
	t.Helper()
	text := out.String()
	if !strings.HasPrefix(text, first) || strings.Count(text, "it adds up") != 6 || !strings.Contains(text, "is stale, the row is at") {
		t.Errorf("it says\n%s", text)
	}
}

// The key in the recorded statements is the one that Go takes.
func TestRailsapp_key(t *testing.T) {
	t.Parallel()
	hi, lo, _ := invoiceLock.Pair()
	if want := fmt.Sprintf("SELECT pg_try_advisory_lock(%d,%d)", hi, lo); tryLock != want {
		t.Errorf("%s, want %s", tryLock, want)
	}
}
