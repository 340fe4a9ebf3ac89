package inspect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// HandlerOption changes what [Handler] shows and allows: every [Option] of a snapshot,
// [Refresh] and [AllowCancel]. The set is closed.
type HandlerOption interface {
	applyHandler(*Page) error
}

type handlerOption func(*Page) error

func (o handlerOption) applyHandler(p *Page) error { return o(p) }

// Refresh is how often the page looks at the database, and a browser at the page, while
// somebody looks. Default: 2 seconds.
func Refresh(d time.Duration) HandlerOption {
	return handlerOption(func(p *Page) error {
		if d < 100*time.Millisecond || d > 5*time.Minute {
			return fmt.Errorf("gormlock: inspect: Refresh(%s) is not between 100ms and 5m", d)
		}
		p.refresh = d
		return nil
	})
}

// AllowCancel puts buttons on the page that cancel a session's query or end the session,
// for requests that authorize allows. It is asked for each request, for a POST before
// anything happens. The database decides too: the role of db must be the session's own, or
// have pg_signal_backend. Default: nothing can be cancelled.
func AllowCancel(authorize func(r *http.Request) bool) HandlerOption {
	return handlerOption(func(p *Page) error {
		if authorize == nil {
			return errors.New("gormlock: inspect: AllowCancel(nil) authorizes nobody")
		}
		p.authorize = authorize
		return nil
	})
}

// Page is a live page of the locks of a database. It is made by [Handler].
type Page struct {
	db        *sql.DB
	snapshot  []Option
	refresh   time.Duration
	authorize func(*http.Request) bool
	invalid   error // of the options

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running bool
	used    time.Time
	last    state
	fresh   chan struct{} // closed by the next look at the database
	history history
}

// state is what the last looks at the database gave.
type state struct {
	view    *View // the last there was
	looked  time.Time
	begun   time.Time // when somebody began to look again
	failure error     // of the last look
	since   time.Time // of the first failure in a row
}

const (
	unused      = time.Minute      // for how long nobody has to ask before the page stops looking
	lookTimeout = 15 * time.Second // of one look at the database
	overdue     = 6 * time.Second  // when people are told that a look takes long
)

// Handler is a page that shows who holds what and who waits for whom in the database db
// leads to: people get HTML, programs that accept application/json get the [View] with
// its tree and its history. It works at any path, and loads nothing from elsewhere.
//
// It looks at the database while somebody looks at it, once for all of them, and stops a
// minute after the last; [Page.Close] ends that at once. When the server cannot be reached
// the page says so, shows what it saw last, and goes on trying.
//
// Give it a pool of its own, of two connections: when a program hangs, all connections of
// its pool may wait for locks.
//
// It shows queries, and so what is in them: put it where only those come who may see
// that. An option that makes no sense is what every request is answered with.
func Handler(db *sql.DB, opts ...HandlerOption) *Page {
	p := &Page{db: db, refresh: 2 * time.Second, fresh: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.snapshot = []Option{Limit(300)}
	for _, o := range opts {
		if o == nil {
			p.invalid = errors.Join(p.invalid, errors.New("gormlock: inspect: a nil option"))
			continue
		}
		p.invalid = errors.Join(p.invalid, o.applyHandler(p))
	}
	return p
}

// Close ends what the page does in the background, and returns when it has ended. Later
// requests are answered with an error.
func (p *Page) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.wg.Wait()
	return nil
}

// ServeHTTP implements [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	switch {
	case p.invalid != nil:
		http.Error(w, p.invalid.Error(), http.StatusInternalServerError)
	case r.Method == http.MethodPost && p.authorize != nil:
		p.serveCancel(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page is read-only", http.StatusMethodNotAllowed)
	case prefersJSON(r.Header):
		p.serveJSON(w, r)
	default:
		p.serveHTML(w, r)
	}
}

// secure sets the headers by which a browser shows the page and nothing else.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept")
}

var (
	errClosed = errors.New("gormlock: inspect: the page is closed")
	errSilent = errors.New("gormlock: inspect: the server has not answered yet")
)

// look is the state of the database, no older than the refresh, or what is known when the
// server does not answer soon.
func (p *Page) look(ctx context.Context) (state, []Sample, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return state{}, nil, errClosed
	}
	p.used = time.Now()
	if !p.running {
		p.running, p.last.begun = true, p.used
		p.wg.Go(p.watch)
	}
	if time.Since(p.last.looked) > p.refresh+p.refresh/2 {
		fresh, soon := p.fresh, time.NewTimer(p.last.worth())
		defer soon.Stop()
		p.mu.Unlock()
		select {
		case <-fresh:
		case <-soon.C:
		case <-ctx.Done():
		}
		p.mu.Lock()
	}
	return p.last.at(time.Now(), p.refresh), p.history.list(), nil
}

// worth is how long a newer state is worth waiting for: longer where there is none yet.
func (s state) worth() time.Duration {
	if s.view == nil && s.failure == nil {
		return lookTimeout
	}
	return 3 * time.Second
}

// at is the state as it is now: a look that takes too long is a server that does not answer.
func (s state) at(now time.Time, refresh time.Duration) state {
	last := s.looked
	if s.begun.After(last) {
		last = s.begun
	}
	if age := now.Sub(last) - refresh; s.failure == nil && s.view != nil && age > overdue {
		s.failure, s.since = fmt.Errorf("gormlock: inspect: no answer for %s", span(age)), last
	}
	return s
}

// watch looks at the database until nobody looks at the page.
func (p *Page) watch() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(p.ctx, lookTimeout)
		view, err := Snapshot(ctx, p.db, p.snapshot...)
		gone := 0
		if err == nil {
			gone, err = gaveUp(ctx, p.db, p.history.before, view)
		}
		cancel()
		if !p.keep(view, gone, err) {
			return
		}
		timer.Reset(max(p.refresh-time.Since(began), p.refresh/10))
	}
}

// keep takes in what a look gave, and reports whether to go on.
func (p *Page) keep(view *View, gone int, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last.looked = time.Now()
	switch {
	case err == nil:
		p.history.add(view, gone)
		p.last.view, p.last.failure, p.last.since = view, nil, time.Time{}
	case p.last.failure == nil:
		p.history.gap()
		p.last.since = time.Now()
		fallthrough
	default:
		p.last.failure = err
	}
	close(p.fresh)
	p.fresh = make(chan struct{})
	p.running = time.Since(p.used) < unused
	return p.running
}
