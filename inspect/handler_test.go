package inspect_test

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// reply is the response to a request, after redirects.
type reply struct {
	StatusCode int
	Header     http.Header
	Path       string
}

// ask sends a request and returns the answer and its body.
func ask(t *testing.T, client *http.Client, method, address string, form url.Values, header ...string) (reply, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, answer.Request.URL.Path}, string(body)
}

func get(t *testing.T, address string, header ...string) (reply, string) {
	t.Helper()
	return ask(t, http.DefaultClient, http.MethodGet, address, nil, header...)
}

func TestHandler_answersInTheFormatAskedFor(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	c := newChain(t, dsn)
	_, address := serve(t, dsn, inspect.Known(c.a, c.b))
	for accept, want := range map[string]string{
		"": "text/html", "*/*": "text/html", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": "text/html",
		"application/json": "application/json", "application/json, text/plain, */*": "application/json",
		"text/html;q=0.5, application/json;q=0.4": "text/html", "text/html;q=0.4, application/json;q=0.5": "application/json",
		"nonsense;;;, application/json": "application/json",
	} {
		answer, body := get(t, address+"/any/where?x=1", "Accept", accept)
		if got := answer.Header.Get("Content-Type"); !strings.HasPrefix(got, want) || answer.StatusCode != http.StatusOK {
			t.Errorf("Accept %q: %d %s, want %s:\n%s", accept, answer.StatusCode, got, want, body)
		}
	}
	_, body := get(t, address, "Accept", "application/json")
	var view struct {
		inspect.View
		Tree    []*inspect.Node
		History []inspect.Sample
	}
	if err := json.Unmarshal([]byte(body), &view); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if len(view.Locks) != 4 || view.Totals.Waiting != 2 || len(view.History) == 0 || len(view.Tree) != 1 ||
		outline(view.Tree) != fmt.Sprintf("%d(%d(%d))", pid(c.one), pid(c.two), pid(c.three)) {
		t.Errorf("%s", body)
	}
	c.finish()
}

func TestHandler_loadsAndShowsNothingForeign(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	c := newChain(t, dsn)
	_, address := serve(t, dsn, inspect.Known(c.a, c.b))
	answer, body := get(t, address)
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Vary": "Accept",
	} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	policy := answer.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("no %q in the policy %q", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	if strings.Contains(body, script) || strings.Contains(body, "web-<b>") || !strings.Contains(body, "&lt;script&gt;") {
		t.Errorf("a name is not escaped in %s", body)
	}
	if found := regexp.MustCompile(`(?i)(src|href|url)\s*[=(]\s*["']?(https?:)?//`).FindString(body); found != "" {
		t.Errorf("the page loads %q", found)
	}
	if strings.Contains(body, `method="post"`) || answer.Header.Get("Set-Cookie") != "" {
		t.Error("a page that is read-only has forms or cookies")
	}
	c.finish()
}

func TestHandler_isReadOnly(t *testing.T) {
	t.Parallel()
	_, address := serve(t, pgtest.DSN(t))
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		if answer, body := ask(t, http.DefaultClient, method, address, url.Values{"do": {"terminate"}}); answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d %s", method, answer.StatusCode, body)
		}
	}
	if answer, body := ask(t, http.DefaultClient, http.MethodHead, address, nil); answer.StatusCode != http.StatusOK || body != "" {
		t.Errorf("HEAD: %d %q", answer.StatusCode, body)
	}
}

var (
	wholeForm = regexp.MustCompile(`<form method="post">.*?</form>`)
	formField = regexp.MustCompile(`name="(token|pid|started|statement)" value="([^"]*)"`)
)

// forms are the fields of the page's forms, by pid.
func forms(body string) map[string]url.Values {
	all := map[string]url.Values{}
	for _, text := range wholeForm.FindAllString(body, -1) {
		form := url.Values{}
		for _, m := range formField.FindAllStringSubmatch(text, -1) {
			form.Set(m[1], html.UnescapeString(m[2]))
		}
		if strings.Contains(text, "Cancel query") != form.Has("statement") {
			panic("a form that offers to cancel names the statement: " + text)
		}
		all[form.Get("pid")] = form
	}
	return all
}

// formOf returns the form of a session on the page, once it fits.
func formOf(t *testing.T, client *http.Client, address string, pid int, fits func(url.Values) bool) url.Values {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		_, body := ask(t, client, http.MethodGet, address, nil)
		if form := forms(body)[fmt.Sprint(pid)]; form != nil && fits(form) {
			return form
		}
		if time.Now().After(deadline) {
			t.Fatalf("no such form for %d in %s", pid, body)
		}
	}
}

func newClient(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

func TestAllowCancel_cancelsAndTerminates(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	_, address := serve(t, dsn, inspect.Refresh(100*time.Millisecond), inspect.AllowCancel(func(*http.Request) bool { return true }))
	holder, waiter := pgtest.Conn(t, pgtest.Through(dsn)), pgtest.Conn(t, pgtest.Through(dsn))
	lock(t, holder, lockkey.Int64(1))
	done := make(chan error, 1)
	go func() {
		_, err := waiter.Exec(t.Context(), "SELECT pg_advisory_xact_lock(1)")
		done <- err
	}()
	pgtest.Observe(t, dsn).WaitBackendBlocked(t, pid(waiter))
	client := newClient(t)
	form := formOf(t, client, address+"/at/a/path", pid(waiter), func(f url.Values) bool { return f.Has("statement") })
	form.Set("do", "cancel")
	answer, body := ask(t, client, http.MethodPost, address+"/at/a/path", form)
	if answer.StatusCode != http.StatusOK || answer.Path != "/at/a/path" || !strings.Contains(body, "asked session "+form.Get("pid")+" to cancel its query") {
		t.Errorf("%d at %s: %s", answer.StatusCode, answer.Path, body)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "57014") {
		t.Errorf("the wait ended with %v, want a cancel", err)
	}

	form = forms(body)[fmt.Sprint(pid(holder))]
	if form == nil {
		t.Fatalf("no form for %d in %s", pid(holder), body)
	}
	// A later session with the same process id is spared.
	stale := url.Values{"do": {"terminate"}, "pid": form["pid"], "token": form["token"], "started": {"2001-01-01T00:00:00Z"}}
	if _, body := ask(t, client, http.MethodPost, address, stale); !strings.Contains(body, "has ended already") {
		t.Errorf("%s", body)
	}
	run(t, holder, "SELECT 1")
	form.Set("do", "terminate")
	if answer, body := ask(t, client, http.MethodPost, address, form); answer.StatusCode != http.StatusOK || !strings.Contains(body, "to end") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	pgtest.Observe(t, dsn).AssertFree(t, lockkey.Int64(1))
}

// If nothing is done, the page says so: a session that runs nothing cannot be cancelled, and neither can a query that was not shown.
func TestAllowCancel_cancelsNothingElse(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	_, address := serve(t, dsn, inspect.Refresh(100*time.Millisecond), inspect.AllowCancel(func(*http.Request) bool { return true }))
	holder, waiter := pgtest.Conn(t, pgtest.Through(dsn)), pgtest.Conn(t, pgtest.Through(dsn))
	run(t, holder, "BEGIN; SELECT pg_advisory_lock(1); SELECT pg_advisory_lock(2)")
	done := make(chan error, 1)
	execute := func(key int) {
		go func() {
			_, err := waiter.Exec(t.Context(), "SELECT pg_advisory_lock($1)", key)
			done <- err
		}()
		pgtest.Observe(t, dsn).WaitBackendBlocked(t, pid(waiter))
	}
	execute(1)
	client := newClient(t)
	seen := formOf(t, client, address, pid(waiter), func(f url.Values) bool { return f.Has("statement") })
	idle := formOf(t, client, address, pid(holder), func(f url.Values) bool { return !f.Has("statement") })
	cancel := func(form url.Values) (reply, string) {
		form.Set("do", "cancel")
		return ask(t, client, http.MethodPost, address, form)
	}
	if answer, body := cancel(idle); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a session that is idle in a transaction: %d %s", answer.StatusCode, body)
	}
	const changed = "nothing was cancelled: session %d does not run that query any more"
	idle.Set("statement", seen.Get("statement"))
	if _, body := cancel(idle); !strings.Contains(body, fmt.Sprintf(changed, pid(holder))) {
		t.Errorf("a session that became idle: %s", body)
	}
	run(t, holder, "SELECT pg_advisory_unlock(1)")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	execute(2)
	if _, body := cancel(seen); !strings.Contains(body, fmt.Sprintf(changed, pid(waiter))) {
		t.Errorf("a session that runs another query: %s", body)
	}
	run(t, holder, "SELECT pg_advisory_unlock(2)")
	if err := <-done; err != nil {
		t.Errorf("the query that came after: %v", err)
	}
	// A client of another database blocks in what all of them share.
	elsewhere := pgtest.Conn(t, pgtest.Through(pgtest.DSN(t)))
	foreign := url.Values{"token": seen["token"], "pid": {fmt.Sprint(pid(elsewhere))}, "do": {"terminate"}}
	var started time.Time
	if err := elsewhere.QueryRow(t.Context(), "SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()").Scan(&started); err != nil {
		t.Fatal(err)
	}
	foreign.Set("started", started.Format(time.RFC3339Nano))
	if _, body := ask(t, client, http.MethodPost, address, foreign); !strings.Contains(body, "it is not a client of this database") {
		t.Errorf("of another database: %s", body)
	}
	run(t, elsewhere, "SELECT 1")
}

func TestAllowCancel_refuses(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	allowed := func(r *http.Request) bool { return r.Header.Get("X-Admin") == "yes" }
	_, address := serve(t, dsn, inspect.AllowCancel(allowed))
	holder := pgtest.Conn(t, pgtest.Through(dsn))
	lock(t, holder, lockkey.Int64(1))
	client := newClient(t)
	if _, body := ask(t, client, http.MethodGet, address, nil); len(forms(body)) > 0 {
		t.Error("who is not authorized has forms")
	}
	_, body := ask(t, client, http.MethodGet, address, nil, "X-Admin", "yes")
	form := forms(body)[fmt.Sprint(pid(holder))]
	if form == nil {
		t.Fatalf("no form in %s", body)
	}
	with := func(name, value string) url.Values {
		changed := url.Values{"do": {"terminate"}}
		for k, v := range form {
			changed[k] = v
		}
		changed.Set(name, value)
		return changed
	}
	for name, c := range map[string]struct {
		client *http.Client
		form   url.Values
		header []string
		want   int
	}{
		"not authorized":       {client, with("do", "terminate"), nil, http.StatusForbidden},
		"without the cookie":   {newClient(t), with("do", "terminate"), []string{"X-Admin", "yes"}, http.StatusForbidden},
		"without the token":    {client, with("token", ""), []string{"X-Admin", "yes"}, http.StatusForbidden},
		"with another token":   {client, with("token", "aaaaaaaaaaaaaaaaaaaaaaaaaa"), []string{"X-Admin", "yes"}, http.StatusForbidden},
		"from another site":    {client, with("do", "terminate"), []string{"X-Admin", "yes", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"from another origin":  {client, with("do", "terminate"), []string{"X-Admin", "yes", "Origin", "https://elsewhere.example"}, http.StatusForbidden},
		"something else to do": {client, with("do", "drop"), []string{"X-Admin", "yes"}, http.StatusBadRequest},
		"no process id":        {client, with("pid", "1; DROP TABLE x"), []string{"X-Admin", "yes"}, http.StatusBadRequest},
		"no time of the query": {client, with("do", "cancel"), []string{"X-Admin", "yes"}, http.StatusBadRequest},
		"too long":             {client, with("do", strings.Repeat("x", 1<<20)), []string{"X-Admin", "yes"}, http.StatusForbidden},
	} {
		if answer, body := ask(t, c.client, http.MethodPost, address, c.form, c.header...); answer.StatusCode != c.want {
			t.Errorf("%s: %d, want %d: %s", name, answer.StatusCode, c.want, body)
		}
	}
	run(t, holder, "SELECT 1") // it is alive
}

func TestHandler_saysThatTheServerIsAway(t *testing.T) {
	t.Parallel()
	proxy, dsn := pgtest.Tap(t, pgtest.DSN(t))
	proxy.Refuse()
	_, address := serve(t, dsn, inspect.Refresh(100*time.Millisecond))
	answer, body := get(t, address)
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "The database does not answer") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	answer, body = get(t, address, "Accept", "application/json")
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.HasPrefix(body, `{"error":"gormlock: inspect: `) {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	proxy.Admit()
	for deadline := time.Now().Add(20 * time.Second); answer.StatusCode != http.StatusOK && time.Now().Before(deadline); {
		answer, body = get(t, address)
	}
	if answer.StatusCode != http.StatusOK || strings.Contains(body, "does not answer</b>") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

// The server is silent, but not down: requests do not wait for long, and passwords are not shown.
func TestHandler_waitsForASilentServerNotForLong(t *testing.T) {
	t.Parallel()
	proxy, dsn := pgtest.Tap(t, pgtest.DSN(t))
	_, address := serve(t, dsn, inspect.Refresh(100*time.Millisecond))
	get(t, address)
	proxy.Stall()
	t.Cleanup(proxy.Resume)
	var answer reply
	var body string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		began := time.Now()
		answer, body = get(t, address)
		if took := time.Since(began); took > 20*time.Second {
			t.Fatalf("an answer took %s", took)
		}
		if answer.StatusCode == http.StatusServiceUnavailable {
			break
		}
	}
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "what was seen last") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

// 100,000 locks: the page stays small and says what it leaves out.
func TestHandler_ofManyLocks(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t, pgserver.Setting("max_locks_per_transaction", "400"))
	holder := pgtest.Conn(t, pgtest.Through(server.DSN("postgres")))
	run(t, holder, "SELECT count(pg_advisory_lock(n)) FROM generate_series(1, 100000) n")
	_, address := serve(t, server.DSN("postgres"))
	began := time.Now()
	answer, body := get(t, address)
	t.Logf("the page of 100,000 locks: %d bytes in %s", len(body), time.Since(began))
	if answer.StatusCode != http.StatusOK || len(body) > 500_000 || !strings.Contains(body, "99,700 more are not shown") || !strings.Contains(body, "100,000") {
		t.Errorf("%d, %d bytes", answer.StatusCode, len(body))
	}
}

func TestHandler_remembersTheLastMinutes(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	_, address := serve(t, dsn, inspect.Refresh(100*time.Millisecond))
	holder, waiter := pgtest.Conn(t, pgtest.Through(dsn), pgtest.Schema()), pgtest.Conn(t, pgtest.Through(dsn), pgtest.Schema())
	accounts(t, holder)
	run(t, holder, "BEGIN; SELECT pg_advisory_lock(1); UPDATE accounts SET balance = 1")
	run(t, waiter, "SET lock_timeout = '600ms'")
	var history struct{ History []inspect.Sample }
	total := func() (begun, gone float64) {
		_, body := get(t, address, "Accept", "application/json")
		if err := json.Unmarshal([]byte(body), &history); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		for _, s := range history.History {
			begun += s.Begun
			gone += float64(s.GaveUp)
		}
		return begun, gone
	}
	total()
	for i, text := range []string{"SELECT pg_advisory_xact_lock(1)", "UPDATE accounts SET balance = 2"} {
		for deadline := time.Now().Add(20 * time.Second); ; {
			if _, err := waiter.Exec(t.Context(), text); err == nil || !strings.Contains(err.Error(), "55P03") {
				t.Fatalf("%s: %v, want a timeout", text, err)
			}
			if _, gone := total(); gone > float64(i) {
				break // a slow machine may have missed the wait
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the timeout is not in %+v", text, history.History)
			}
		}
	}
	if begun, _ := total(); begun == 0 {
		t.Errorf("no wait began in %+v", history.History)
	}
	if !slices.ContainsFunc(history.History, func(s inspect.Sample) bool { return s.Longest > 50*time.Millisecond && s.Waiting == 1 }) {
		t.Errorf("no wait was seen in %+v", history.History)
	}
	// A waiter that gets the lock has not given up.
	settled := func() (gone float64) {
		for n := len(history.History); len(history.History) < n+3; {
			_, gone = total()
		}
		return gone
	}
	before := settled()
	run(t, holder, "SELECT pg_advisory_unlock(1)")
	run(t, waiter, "SELECT pg_advisory_xact_lock(1)")
	if after := settled(); after != before {
		t.Errorf("%v gave up, then %v", before, after)
	}
	run(t, holder, "ROLLBACK")
}

func TestHandler_refusesBadOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]inspect.HandlerOption{
		"Refresh": inspect.Refresh(0), "AllowCancel": inspect.AllowCancel(nil), "Limit": inspect.Limit(-1), "a nil option": nil,
		"Known": inspect.Known(lockkey.Of()),
	} {
		page := inspect.Handler(nil, o)
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "gormlock: inspect: "+name) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// TestMain checks that nothing is left.
func TestHandler_endsWithClose(t *testing.T) {
	t.Parallel()
	page := inspect.Handler(pgtest.SQLDB(t))
	asked := func() int {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		return w.Code
	}
	if code := asked(); code != http.StatusOK {
		t.Errorf("%d", code)
	}
	for range 2 {
		if err := page.Close(); err != nil {
			t.Error(err)
		}
	}
	if code := asked(); code != http.StatusServiceUnavailable {
		t.Errorf("after Close: %d", code)
	}
}
