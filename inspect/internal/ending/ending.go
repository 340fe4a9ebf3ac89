// Package ending is the form with which a page cancels queries and ends sessions: who may send it, and what it does.
package ending

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gormlock/gormlock/internal/halt"
	"github.com/gormlock/gormlock/internal/otherdb"
)

// Form answers the POSTs of a page. It calls Authorize for each request.
type Form struct {
	DB        *sql.DB
	Authorize func(*http.Request) bool
}

// cookie holds a token. Only a page of this origin can repeat it in a form.
const cookie = "gormlock-inspect"

// foreign refuses requests that, according to the browser, another site caused.
var foreign = http.NewCrossOriginProtection()

// Token is what a form of this browser must repeat. If there is no cookie yet, Token sets it.
func Token(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(cookie); err == nil && len(c.Value) >= 26 {
		return c.Value
	}
	token := rand.Text()
	http.SetCookie(w, &http.Cookie{
		Name: cookie, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	return token
}

// refusal returns why a POST is refused, or nil if it is allowed.
func (f *Form) refusal(r *http.Request) error {
	if err := foreign.Check(r); err != nil {
		return errors.New("the request comes from another site")
	}
	if !f.Authorize(r) {
		return errors.New("you may not cancel anything here")
	}
	c, err := r.Cookie(cookie)
	if err != nil || c.Value == "" || subtle.ConstantTimeCompare([]byte(c.Value), []byte(r.PostFormValue("token"))) != 1 {
		return errors.New("the form does not come from this page: reload it")
	}
	return nil
}

// ends are what can be done to a session, by the word of the form.
var ends = map[string]struct {
	do   func(context.Context, *sql.DB, halt.Seen) (halt.Outcome, error)
	done string
}{
	"cancel":    {halt.Statement, "asked session %d to cancel its query"},
	"terminate": {halt.Session, "asked session %d to end"},
}

// undone are the texts for what was not done, by outcome.
var undone = map[halt.Outcome]string{
	halt.Gone:    "session %d has ended already",
	halt.Changed: "nothing was cancelled: session %d does not run that query any more",
	halt.Foreign: "session %d was left alone: it is not a client of this database",
}

// ServeHTTP does what the form says, and sends the browser back to the page.
func (f *Form) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := f.refusal(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	do := r.PostFormValue("do")
	end, known := ends[do]
	seen, err := seenIn(r)
	if !known || err != nil || do == "cancel" && seen.Statement.IsZero() {
		http.Error(w, "do is cancel or terminate, pid and started are those of a session, statement is since when its query runs", http.StatusBadRequest)
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), 5*time.Second)
	defer stop()
	outcome, err := end.do(ctx, f.DB, seen)
	if err != nil {
		text := "gormlock: inspect: " + err.Error()
		if other := otherdb.Said(err); other != nil {
			text = other.Refusal("inspect", err).Error()
		}
		http.Error(w, text, http.StatusBadGateway)
		return
	}
	did := string(outcome)
	if outcome == halt.Asked {
		did = do
	}
	w.Header().Set("Location", "?"+url.Values{"did": {did}, "pid": {strconv.Itoa(seen.PID)}}.Encode())
	w.WriteHeader(http.StatusSeeOther)
}

// seenIn is the session as the page showed it. Another session may have its process id by now.
func seenIn(r *http.Request) (halt.Seen, error) {
	pid, err := strconv.ParseInt(r.PostFormValue("pid"), 10, 32)
	if err != nil {
		return halt.Seen{}, err
	}
	seen := halt.Seen{PID: int(pid), Here: true}
	if seen.Started, err = time.Parse(time.RFC3339Nano, r.PostFormValue("started")); err != nil {
		return seen, err
	}
	if statement := r.PostFormValue("statement"); statement != "" {
		seen.Statement, err = time.Parse(time.RFC3339Nano, statement)
	}
	return seen, err
}

// Done is what the last request did, as its redirect says, or "".
func Done(query url.Values) string {
	pid, err := strconv.ParseInt(query.Get("pid"), 10, 32)
	if err != nil {
		return ""
	}
	did := query.Get("did")
	text := undone[halt.Outcome(did)]
	if end, is := ends[did]; is {
		text = end.done
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf(text, pid)
}
