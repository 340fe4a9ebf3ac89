package wiretap_test

import (
	"context"
	"slices"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func expect(t *testing.T, p *wiretap.Proxy, trips int, statements ...string) {
	t.Helper()
	if got := p.RoundTrips(); got != trips {
		t.Errorf("%d round trips, want %d", got, trips)
	}
	if got := p.Statements(); !slices.Equal(got, statements) {
		t.Errorf("statements %q, want %q", got, statements)
	}
	p.Reset()
}

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, dsn := pgtest.Tap(t, pgtest.DSN(t))
	c := pgtest.Conn(t, pgtest.Through(dsn))
	expect(t, p, 0)
	for _, trips := range []int{2, 1, 1} {
		var n int
		if err := c.QueryRow(ctx, "select $1::int", 7).Scan(&n); err != nil || n != 7 {
			t.Fatal(n, err)
		}
		expect(t, p, trips, "select $1::int")
	}
	if _, err := c.Exec(ctx, "begin; select 1; commit"); err != nil {
		t.Fatal(err)
	}
	expect(t, p, 1, "begin; select 1; commit")
}
