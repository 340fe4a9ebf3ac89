package inspect_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/chromium"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// serve starts the page over a database, on an HTTP server of its own.
func serve(t *testing.T, dsn string, opts ...inspect.HandlerOption) (page *inspect.Page, address string) {
	t.Helper()
	page = inspect.Handler(pgtest.SQLDB(t, pgtest.Through(dsn)), opts...)
	server := httptest.NewServer(page)
	t.Cleanup(func() {
		server.Close()
		if err := page.Close(); err != nil {
			t.Error(err)
		}
	})
	return page, server.URL
}

// chain is three sessions: the third waits for the second, and the second waits for the first.
type chain struct {
	a, b            lockkey.Key
	one, two, three *pgx.Conn
	finish          func()
}

const script = "<script>document.title = 'taken over'</script>"

func newChain(t *testing.T, dsn string) *chain {
	t.Helper()
	session := func(name string) *pgx.Conn {
		return pgtest.Conn(t, pgtest.Through(dsn), pgtest.Param("application_name", name))
	}
	c := &chain{a: lockkey.Of("invoice", 42), b: lockkey.Of(script), one: session("billing-7"), two: session("api-2"), three: session("web-<b>1</b>")}
	lock(t, c.one, c.a)
	lock(t, c.two, c.b)
	// pgtest's own functions look at the test binary's database.
	observer := pgtest.Observe(t, dsn)
	wait := func(on *pgx.Conn, key lockkey.Key) (finish func()) {
		done := make(chan error, 1)
		ctx, giveUp := context.WithCancel(context.WithoutCancel(t.Context()))
		var waiting sync.WaitGroup
		t.Cleanup(func() { // before on is closed
			giveUp()
			waiting.Wait()
		})
		waiting.Go(func() {
			_, err := on.Exec(ctx, "SELECT pg_advisory_xact_lock("+arguments(key)+") /* "+script+" */")
			done <- err
		})
		observer.WaitBackendBlocked(t, pid(on))
		return func() {
			t.Helper()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	two := wait(c.two, c.a)
	three := wait(c.three, c.b)
	c.finish = func() {
		t.Helper()
		unlock(t, c.one, c.a)
		two()
		unlock(t, c.two, c.b)
		three()
	}
	return c
}

func TestPage_inChromium(t *testing.T) {
	t.Parallel()
	b := chromium.New(t)
	dsn := pgtest.Database(t)
	c := newChain(t, dsn)
	_, address := serve(t, dsn, inspect.Known(c.a, c.b), inspect.Refresh(200*time.Millisecond))
	b.Screen(1280, 900, "light", false)
	b.Open(address)

	// The chain is drawn: each session is to the right of the one that it waits for.
	b.Wait("document.querySelectorAll('#graph .card').length === 3")
	place := func(name string) float64 {
		x, _ := b.Eval(fmt.Sprintf("[...document.querySelectorAll('#graph .card')].filter(c => c.querySelector('.name').textContent === %q)[0]?.getBoundingClientRect().x", name)).(float64)
		return x
	}
	if one, two, three := place("billing-7"), place("api-2"), place("web-<b>1</b>"); !(one > 0 && one < two && two < three) {
		t.Errorf("the chain is drawn at %v, %v, %v", one, two, three)
	}
	if n := b.Eval("document.querySelectorAll('#graph .edge').length"); n != 2.0 {
		t.Errorf("%v edges", n)
	}
	// Text is not interpreted as markup.
	if title := b.Eval("document.title").(string); strings.Contains(title, "taken over") || !strings.HasPrefix(title, "(2)") {
		t.Errorf("the title is %q", title)
	}
	if text := b.Eval("document.body.innerText").(string); !strings.Contains(text, script) {
		t.Errorf("the name is not shown as it is: %s", text)
	}
	if n := b.Eval("document.querySelectorAll('main script, main b b').length"); n != 0.0 {
		t.Errorf("%v elements come from names", n)
	}
	// The style and the script pass the page's own policy.
	if color := b.Eval("getComputedStyle(document.body).backgroundColor"); color != "rgb(244, 245, 248)" {
		t.Errorf("the style does not apply: the page is %v", color)
	}

	// It refreshes by itself, keeps details open, and notices the end.
	b.Eval("document.querySelector('tbody details').open = true; document.documentElement.dataset.refreshed = 0")
	b.Wait("Number(document.documentElement.dataset.refreshed) >= 2")
	if open := b.Eval("!!document.querySelector('tbody details[open]')"); open != true {
		t.Error("a refresh closes what was opened")
	}
	b.Eval("document.getElementById('filter').value = 'invoice'; document.getElementById('filter').dispatchEvent(new Event('input'))")
	if n := b.Eval("[...document.querySelectorAll('tbody tr')].filter(r => !r.hidden).length"); n != 2.0 {
		t.Errorf("the filter leaves %v rows, want who holds invoice/42 and who waits for it", n)
	}
	c.finish()
	b.Wait("document.body.innerText.includes('Nobody waits') && document.title.startsWith('Locks')")
}

// The server goes down and comes back while somebody watches.
func TestPage_inChromiumSurvivesTheServer(t *testing.T) {
	t.Parallel()
	b := chromium.New(t)
	server := pgtest.Fresh(t)
	_, address := serve(t, server.DSN("postgres"), inspect.Refresh(200*time.Millisecond))
	b.Open(address)
	b.Wait("document.body.innerText.includes('Nobody waits')")
	if err := server.Crash(); err != nil {
		t.Fatal(err)
	}
	b.Wait("document.body.innerText.includes('The database does not answer') && !!document.querySelector('.view.stale')")
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Wait("!document.body.innerText.includes('The database does not answer') && !document.querySelector('.view.stale')")
}
