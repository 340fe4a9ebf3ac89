package inspect_test

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/chromium"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// The pictures of the documentation: light, dark and on a phone. Nothing overflows. With GORMLOCK_SCREENSHOTS they are written to that directory,
// after a while of short waits.
func TestPage_inChromiumOnEveryScreen(t *testing.T) {
	t.Parallel()
	b := chromium.New(t)
	address := busy(t)
	for deadline := time.Now().Add(100 * time.Second); os.Getenv("GORMLOCK_SCREENSHOTS") != "" && time.Now().Before(deadline); <-time.After(300 * time.Millisecond) {
		get(t, address)
	}
	seen := map[string]bool{}
	for _, s := range []struct {
		name, scheme  string
		width, height int
		mobile        bool
	}{
		{"light", "light", 1240, 980, false}, {"dark", "dark", 1240, 980, false}, {"phone", "light", 390, 844, true},
	} {
		b.Screen(s.width, s.height, s.scheme, s.mobile)
		b.Open(address)
		b.Wait("document.querySelectorAll('#graph .card').length === 10")
		if wide := b.Eval("document.documentElement.scrollWidth"); wide != float64(s.width) {
			t.Errorf("%s: the page is %v wide, the screen %d", s.name, wide, s.width)
		}
		text := fmt.Sprint(b.Eval("document.body.innerText"))
		for _, want := range []string{"takes invoice/42, timeout 1h", "probably db used in place of tx"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not on the page: %s", s.name, want, text)
			}
		}
		seen[fmt.Sprint(b.Eval("getComputedStyle(document.body).backgroundColor"))] = true
		picture, err := png.Decode(bytes.NewReader(b.Shoot("inspect-" + s.name)))
		if err != nil {
			t.Fatal(err)
		}
		colors := map[any]bool{}
		for x := 0; x < picture.Bounds().Dx(); x += 3 {
			for y := 0; y < picture.Bounds().Dy(); y += 3 {
				colors[picture.At(x, y)] = true
			}
		}
		if len(colors) < 20 {
			t.Errorf("%s: %d colours, which is no page", s.name, len(colors))
		}
	}
	if len(seen) != 2 {
		t.Errorf("light and dark are %v", seen)
	}
}

// busy is the page of a database with some of everything: a chain of three, a row, a program that waits for itself, a deadlock that the server has
// not detected yet, a manager with a token, a lease.
func busy(t *testing.T) (address string) {
	t.Helper()
	server := pgtest.Fresh(t)
	if _, err := server.CreateDatabase(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	dsn := server.DSN("shop")
	session := func(name string) *pgx.Conn {
		return pgtest.Conn(t, pgtest.Through(dsn), pgtest.Param("application_name", name), pgtest.Param("deadlock_timeout", "1h"))
	}
	invoice, report := lockkey.Of("invoice", 42), lockkey.Of("report", "daily")
	stock, prices := lockkey.Of("stock", 7), lockkey.Of("prices", 7)
	exporting := lockkey.Of("export", "nightly")

	db := pgtest.SQLDB(t, pgtest.Through(dsn))
	if err := lease.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	leases, err := lease.New(t.Context(), db, lease.Owner("mailer-1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leases.Acquire(t.Context(), lockkey.Of("newsletter"), time.Hour); err != nil {
		t.Fatal(err)
	}
	manager, err := sessionlock.Open(t.Context(), dsn, sessionlock.Owner("worker-3"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manager.Acquire(t.Context(), exporting, sessionlock.Fenced()); err != nil {
		t.Fatal(err)
	}
	_, address = serve(t, dsn, inspect.Known(invoice, report, stock, prices), inspect.Refresh(250*time.Millisecond))

	billing, api, psql := session("billing-7"), session("api-2"), session("psql")
	cronA, cronB := session("cron-a"), session("cron-b")
	accounts(t, psql)
	lock(t, billing, invoice)
	lock(t, api, report)
	lock(t, cronA, stock)
	lock(t, cronB, prices)
	run(t, psql, "BEGIN")
	run(t, psql, "UPDATE accounts SET balance = balance - 100 WHERE id = 1")
	shop := session("shop")
	run(t, shop, "BEGIN")
	run(t, shop, "UPDATE accounts SET balance = balance + 1 WHERE id = 2")

	var waiters sync.WaitGroup
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	observer := pgtest.Observe(t, dsn)
	for _, w := range []struct {
		on   *pgx.Conn
		text string
	}{
		{api, asks(t, invoice)},
		{session("web-1"), "SELECT pg_advisory_xact_lock(" + arguments(report) + ")"},
		{session("web-2"), "SELECT pg_advisory_xact_lock(" + arguments(report) + ")"},
		{session("worker-9"), "UPDATE accounts SET balance = balance + 10 WHERE id = 1"},
		{session("shop"), "UPDATE accounts SET balance = 0 WHERE id = 2"},
		{cronA, "SELECT pg_advisory_xact_lock(" + arguments(prices) + ")"},
		{cronB, "SELECT pg_advisory_xact_lock(" + arguments(stock) + ")"},
	} {
		waiters.Go(func() { _, _ = w.on.Exec(ctx, w.text) }) // until stop
		observer.WaitBackendBlocked(t, pid(w.on))
	}
	if os.Getenv("GORMLOCK_SCREENSHOTS") != "" {
		short := session("web-3")
		waiters.Go(func() { waitInVain(ctx, short, invoice) })
	}
	t.Cleanup(func() {
		stop()
		waiters.Wait()
		_ = manager.Close(context.Background())
		_ = leases.Close(context.Background())
	})
	return address
}

// asks is the statement with which gormlock begins a transaction with a lock.
func asks(t *testing.T, key lockkey.Key) string {
	t.Helper()
	r, err := lockrequest.New([]lockkey.Key{key}, advisory.Timeout(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	_, locks := r.Opening(false).Around()
	return "BEGIN; " + locks
}

// waitInVain gives the plots something to show, in bursts that do not change the graph.
func waitInVain(ctx context.Context, c *pgx.Conn, key lockkey.Key) {
	for i := range 12 {
		_, err := c.Exec(ctx, fmt.Sprintf("SET lock_timeout = %d", 400+i%4*500))
		if err == nil {
			_, _ = c.Exec(ctx, "SELECT pg_advisory_xact_lock("+arguments(key)+")")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(1+i%5*2) * time.Second):
		}
	}
}
