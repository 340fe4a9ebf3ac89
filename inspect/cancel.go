package inspect

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
)

// csrfCookie holds a token that only a page of this origin can repeat in a form.
const csrfCookie = "gormlock-inspect"

// foreign refuses what a browser says another site made it send.
var foreign = http.NewCrossOriginProtection()

func csrfToken(w http.ResponseWriter, r *http.Request) string {
	if cookie, err := r.Cookie(csrfCookie); err == nil && len(cookie.Value) >= 26 {
		return cookie.Value
	}
	token := rand.Text()
	http.SetCookie(w, &http.Cookie{
		Name: csrfCookie, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	return token
}

// refusal says why a POST is not acted on, nil when it may be.
func (p *Page) refusal(r *http.Request) error {
	if err := foreign.Check(r); err != nil {
		return errors.New("the request comes from another site")
	}
	if !p.authorize(r) {
		return errors.New("you may not cancel anything here")
	}
	cookie, err := r.Cookie(csrfCookie)
	if err != nil || cookie.Value == "" || subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(r.PostFormValue("token"))) != 1 {
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

func (p *Page) serveCancel(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := p.refusal(r); err != nil {
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
	err := p.db.QueryRowContext(ctx, fmt.Sprintf(endSQL, end.function), pid, started).Scan(&told)
	outcome := r.PostFormValue("do")
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !told:
		outcome = "gone"
	case err != nil:
		http.Error(w, "gormlock: inspect: "+err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Location", "?"+url.Values{"did": {outcome}, "pid": {strconv.FormatInt(pid, 10)}}.Encode())
	w.WriteHeader(http.StatusSeeOther)
}

// did is what the request before this one did, as the redirect says.
func did(query url.Values) string {
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
