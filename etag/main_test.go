package etag_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gormlock/gormlock/etag"
	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// request has these lines of a header.
func request(method, header string, lines ...string) *http.Request {
	r := httptest.NewRequest(method, "/documents/7", nil)
	for _, line := range lines {
		r.Header.Add(header, line)
	}
	return r
}

func tagOf(t testing.TB, value any) string {
	t.Helper()
	tag, err := etag.Of(value)
	must(t, err)
	return tag
}

// ifMatch is the clause of a request with these lines.
func ifMatch(t testing.TB, lines ...string) etag.Precondition {
	t.Helper()
	expect, err := etag.IfMatch(request(http.MethodPatch, "If-Match", lines...))
	must(t, err)
	return expect
}
