package inspect

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gormlock/gormlock/inspect/internal/ending"
	"github.com/gormlock/gormlock/inspect/internal/page"
	"github.com/gormlock/gormlock/inspect/internal/poll"
	"github.com/gormlock/gormlock/internal/otherdb"
)

// HandlerOption changes what [Handler] shows and allows: every [Option] of a snapshot,
// [Refresh] and [AllowCancel]. The set is closed.
type HandlerOption interface {
	applyHandler(*Page) error
}

type handlerOption func(*Page) error

func (o handlerOption) applyHandler(p *Page) error { return o(p) }

// Refresh sets how often the page asks the database, and how often a browser asks the page, while somebody has it open.
// Default: 2 seconds.
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
// for requests that authorize allows. authorize is called for each request, and for a POST
// before anything happens. The database decides too: the role of db must be the session's
// own, or have pg_signal_backend. Only the query that the page showed is cancelled: if the session runs another one by now, the
// page says that nothing was. A session that runs none, such as one that is idle in a transaction, can only be ended. Default:
// nothing can be cancelled.
func AllowCancel(authorize func(r *http.Request) bool) HandlerOption {
	return handlerOption(func(p *Page) error {
		if authorize == nil {
			return errors.New("gormlock: inspect: AllowCancel(nil) authorizes nobody, give it a function")
		}
		p.form = &ending.Form{DB: p.db, Authorize: authorize}
		return nil
	})
}

// Page is a live page of the locks of a database. [Handler] makes one.
type Page struct {
	db       *sql.DB
	snapshot []Option
	refresh  time.Duration
	form     *ending.Form // nil: nothing can be cancelled
	invalid  error        // of the options
	looks    *poll.Poller[seen]
	history  history // history of the looks, which do not overlap
}

// seen is the result of one look at the database.
type seen struct {
	view    *View
	samples []Sample
}

var errNilPool = errors.New("gormlock: inspect: a nil *sql.DB, give it what sql.Open returned")

// Handler is a page that shows who holds what and who waits for whom in the database db
// leads to: people get HTML, programs that accept application/json get the [View] with
// its tree and its history. It works at any path, and loads nothing from elsewhere.
//
// It asks the database while somebody has it open, once for all viewers, and stops a
// minute after the last; [Page.Close] stops it at once. If the server cannot be reached,
// the page says so, shows what it saw last, and tries again.
//
// Give it a pool of its own, of two connections: when a program hangs, all connections of
// its pool may wait for locks.
//
// It shows queries, and the values in them: let only those see it who may. If an option is invalid, db is nil, or db does not
// lead to PostgreSQL, it answers every request with that error.
func Handler(db *sql.DB, opts ...HandlerOption) *Page {
	p := &Page{db: db, refresh: 2 * time.Second}
	p.snapshot = []Option{Limit(300)}
	for _, o := range opts {
		if o == nil {
			p.invalid = errors.Join(p.invalid, errors.New("gormlock: inspect: a nil option"))
			continue
		}
		p.invalid = errors.Join(p.invalid, o.applyHandler(p))
	}
	if db == nil {
		p.invalid = errors.Join(p.invalid, errNilPool)
	}
	if other := otherdb.Under(db); other != nil {
		p.invalid = errors.Join(p.invalid, other.Refusal("inspect", nil))
	}
	p.looks = poll.New(p.refresh, p.look)
	return p
}

// Close ends what the page does in the background, and returns when it has ended. Later
// requests are answered with an error.
func (p *Page) Close() error {
	p.looks.Close()
	return nil
}

// look is one look at the database.
func (p *Page) look(ctx context.Context) (seen, error) {
	view, err := Snapshot(ctx, p.db, p.snapshot...)
	if err != nil {
		p.history.gap()
		return seen{}, err
	}
	gone, err := gaveUp(ctx, p.db, p.history.before, view)
	if err != nil {
		p.history.gap()
		return seen{}, fmt.Errorf("gormlock: inspect: %w", err)
	}
	p.history.add(view, gone)
	return seen{view, p.history.list()}, nil
}

// ServeHTTP implements [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	switch {
	case p.invalid != nil:
		http.Error(w, p.invalid.Error(), http.StatusInternalServerError)
	case r.Method == http.MethodPost && p.form != nil:
		p.form.ServeHTTP(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page is read-only", http.StatusMethodNotAllowed)
	case page.PrefersJSON(r.Header):
		p.serveJSON(w, r)
	default:
		p.serveHTML(w, r)
	}
}

// secure sets the headers by which a browser shows the page and nothing else.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", page.Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept")
}

// serveHTML answers with the page, or with 503 if there is nothing to show yet.
func (p *Page) serveHTML(w http.ResponseWriter, r *http.Request) {
	state, err := p.looks.Ask(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	c := &page.Content{Refresh: p.refresh, Done: ending.Done(r.URL.Query())}
	if p.form != nil && p.form.Authorize(r) {
		c.Token = ending.Token(w, r)
	}
	if state.Failure != nil {
		c.Failure, c.Silent = state.Failure.Error(), time.Since(state.Since)
	}
	if state.Seen != nil {
		c.Seen = shown(state.Seen)
	}
	var html bytes.Buffer
	if err := page.Write(&html, c); err != nil {
		http.Error(w, "gormlock: inspect: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if state.Failure != nil || state.Seen == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(html.Bytes()) // a client that has gone does not miss it
}

var errSilent = errors.New("gormlock: inspect: the server has not answered yet")

// serveJSON answers with the view, its tree and the history, or with the error alone.
func (p *Page) serveJSON(w http.ResponseWriter, r *http.Request) {
	state, err := p.looks.Ask(r.Context())
	if err == nil {
		err = state.Failure
	}
	if err == nil && state.Seen == nil {
		err = errSilent
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()}) // a client that has gone does not miss it
		return
	}
	tree := Tree(state.Seen.view)
	if tree == nil {
		tree = []*Node{}
	}
	_ = json.NewEncoder(w).Encode(struct {
		*View
		Tree    []*Node  `json:"tree"`
		History []Sample `json:"history"`
	}{state.Seen.view, tree, state.Seen.samples})
}
