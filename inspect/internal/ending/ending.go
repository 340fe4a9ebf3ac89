// Package ending is the form by which a page cancels queries and ends sessions: who may send it, and what it does.
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

	"github.com/gormlock/gormlock/internal/otherdb"
)

// Form answers the POSTs of a page. Authorize is asked for each request.
type Form struct {
	DB        *sql.DB
	Authorize func(*http.Request) bool
}

// cookie holds a token that only a page of this origin can repeat in a form.
const cookie = "gormlock-inspect"

// foreign refuses what a browser says another site made it send.
var foreign = http.NewCrossOriginProtection()

// Token is what a form of this browser has to repeat. It sets the cookie where there is none yet.
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

// refusal says why a POST is not acted on, nil when it may be.
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
var ends = map[string]struct{ function, done string }{
	"cancel":    {"pg_cancel_backend", "asked session %s to cancel its query"},
	"terminate": {"pg_terminate_backend", "asked session %s to end"},
}

// endSQL asks only for the session that the page showed, whose process id another may have
// by now.
const endSQL = `SELECT %s(pid) FROM pg_stat_activity
WHERE pid = $1 AND backend_start = $2 AND datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`

// ServeHTTP does what the form says, and sends the browser back to the page.
func (f *Form) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := f.refusal(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	end, known := ends[r.PostFormValue("do")]
	pid, errPID := strconv.ParseInt(r.PostFormValue("pid"), 10, 32)
	started, errStarted := time.Parse(time.RFC3339Nano, r.PostFormValue("started"))
	if !known || errPID != nil || errStarted != nil {
		http.Error(w, "do is cancel or terminate, pid and started are those of a session", http.StatusBadRequest)
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), 5*time.Second)
	defer stop()
	var told bool
	err := f.DB.QueryRowContext(ctx, fmt.Sprintf(endSQL, end.function), pid, started).Scan(&told)
	outcome := r.PostFormValue("do")
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !told:
		outcome = "gone"
	case err != nil:
		text := "gormlock: inspect: " + err.Error()
		if other := otherdb.Said(err); other != nil {
			text = other.Refusal("inspect", err).Error()
		}
		http.Error(w, text, http.StatusBadGateway)
		return
	}
	w.Header().Set("Location", "?"+url.Values{"did": {outcome}, "pid": {strconv.FormatInt(pid, 10)}}.Encode())
	w.WriteHeader(http.StatusSeeOther)
}

// Done is what the request before this one did, as its redirect says. It is "" where there was none.
func Done(query url.Values) string {
	pid, err := strconv.ParseInt(query.Get("pid"), 10, 32)
	if err != nil {
		return ""
	}
	if query.Get("did") == "gone" {
		return fmt.Sprintf("session %d has ended already", pid)
	}
	if end, ok := ends[query.Get("did")]; ok {
		return fmt.Sprintf(end.done, strconv.FormatInt(pid, 10))
	}
	return ""
}
