package etag_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/etag"
)

func TestIfMatch_withoutOne(t *testing.T) {
	t.Parallel()
	if _, err := etag.IfMatch(request(http.MethodPut, "If-None-Match", `"7"`)); !errors.Is(err, etag.ErrRequired) || errors.Is(err, etag.ErrMalformed) {
		t.Error(err)
	}
	db := open(t, &doc{})
	must(t, db.Create(&doc{ID: 1}).Error)
	for _, line := range []string{"", "7", `"7`, `*, "7"`, `w/"7"`} {
		expect, err := etag.IfMatch(request(http.MethodPut, "If-Match", line))
		if !errors.Is(err, etag.ErrMalformed) || errors.Is(err, etag.ErrRequired) {
			t.Errorf("%s: %v", line, err)
		}
		// If a program drops the error, nothing is written.
		if _, err := etag.IfMatch(request(http.MethodPut, "If-Match", line, `"7"`)); (line == "") != (err == nil) {
			t.Errorf("%s, and a line that is right: %v", line, err)
		}
		if err := db.Clauses(expect).Model(&doc{ID: 1}).Update("title", "lost").Error; !errors.Is(err, gormlock.ErrOption) {
			t.Errorf("%s: the clause that came with an error: %v", line, err)
		}
	}
}

// RFC 9110, 13.1.1, 13.1.2, 13.2.2: answers before anything is done.
func TestRFC9110_NotModified(t *testing.T) {
	t.Parallel()
	const get, head, put, match, none = http.MethodGet, http.MethodHead, http.MethodPut, "If-Match", "If-None-Match"
	for name, c := range map[string]struct {
		method string
		header http.Header
		tag    string
		status int // 0: the handler goes on
	}{
		"no condition":                       {get, nil, `"7"`, 0},
		"the tag":                            {get, http.Header{none: {`"7"`}}, `"7"`, 304},
		"the tag, HEAD":                      {head, http.Header{none: {`"7"`}}, `"7"`, 304},
		"a weak one":                         {get, http.Header{none: {`W/"7"`}}, `"7"`, 304},
		"a weak one of ours":                 {get, http.Header{none: {`"7"`}}, `W/"7"`, 304},
		"another":                            {get, http.Header{none: {`"6"`}}, `"7"`, 0},
		"by octets":                          {get, http.Header{none: {`"07"`}}, `"7"`, 0},
		"a list":                             {get, http.Header{none: {`"6", "7"`}}, `"7"`, 304},
		"a list without it":                  {get, http.Header{none: {`"6", "8"`}}, `"7"`, 0},
		"lines":                              {get, http.Header{none: {`"6"`, `W/"7"`}}, `"7"`, 304},
		"any":                                {get, http.Header{none: {`*`}}, `"7"`, 304},
		"malformed":                          {get, http.Header{none: {`7`}}, `"7"`, 0},
		"half of it malformed":               {get, http.Header{none: {`"7", 8`}}, `"7"`, 0},
		"PUT":                                {put, nil, `"7"`, 0},
		"PUT, the tag":                       {put, http.Header{none: {`"7"`}}, `"7"`, 412},
		"PUT, weak":                          {put, http.Header{none: {`W/"7"`}}, `"7"`, 412},
		"PUT, any":                           {put, http.Header{none: {`*`}}, `"7"`, 412},
		"PUT, another":                       {put, http.Header{none: {`"6"`}}, `"7"`, 0},
		"PUT, malformed":                     {put, http.Header{none: {`7`}}, `"7"`, 400},
		"POST, any":                          {http.MethodPost, http.Header{none: {`*`}}, `"7"`, 412},
		"DELETE, any":                        {http.MethodDelete, http.Header{none: {`*`}}, `"7"`, 412},
		"nothing there":                      {get, http.Header{none: {`*`}}, ``, 0},
		"PUT, nothing there":                 {put, http.Header{none: {`*`}}, ``, 0},
		"If-Match":                           {get, http.Header{match: {`"7"`}}, `"7"`, 0},
		"If-Match, any":                      {get, http.Header{match: {`*`}}, `"7"`, 0},
		"If-Match, another":                  {get, http.Header{match: {`"6"`}}, `"7"`, 412},
		"If-Match, weak":                     {get, http.Header{match: {`W/"7"`}}, `"7"`, 412},
		"If-Match, malformed":                {get, http.Header{match: {`7`}}, `"7"`, 400},
		"If-Match goes first":                {get, http.Header{match: {`"6"`}, none: {`"7"`}}, `"7"`, 412},
		"If-Match holds, then If-None-Match": {get, http.Header{match: {`"7"`}, none: {`"7"`}}, `"7"`, 304},
		"PUT, If-Match is the write's":       {put, http.Header{match: {`"6"`}}, `"7"`, 0},
		"a tag without quotes":               {get, nil, `7`, 500},
		"two tags":                           {get, nil, `"7", "8"`, 500},
		"a tag with a line feed":             {get, nil, "\"7\n\"", 500},
	} {
		r := httptest.NewRequest(c.method, "/documents/7", nil)
		for name, lines := range c.header {
			r.Header[name] = lines
		}
		w := httptest.NewRecorder()
		w.Header().Set("Vary", "Accept")
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Length", "5")
		answered := etag.NotModified(w, r, c.tag)
		status := 0
		if answered {
			status = w.Code
		} else if w.Body.Len() > 0 || w.Code != 200 {
			t.Errorf("%s: something was written: %d %s", name, w.Code, w.Body)
		}
		if status != c.status {
			t.Errorf("%s: %d, want %d", name, status, c.status)
		}
		wantTag := c.tag
		if status == 500 || status == 400 || c.method == get && status == 412 {
			wantTag = w.Header().Get("ETag")
		}
		if got := w.Header().Get("ETag"); got != wantTag || status == 500 && got != "" {
			t.Errorf("%s: ETag is %q", name, got)
		}
		switch status {
		case 304:
			if w.Body.Len() > 0 || w.Header().Get("Content-Length") != "" || w.Header().Get("Content-Type") != "" || w.Header().Get("Vary") != "Accept" {
				t.Errorf("%s: %v %s", name, w.Header(), w.Body)
			}
		case 412, 400, 500:
			mustBeProblem(t, w, status)
		}
	}
}

// mustBeProblem checks that an answer is as RFC 9457 requires, and returns its content.
func mustBeProblem(t testing.TB, w *httptest.ResponseRecorder, status int) map[string]any {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if w.Code != status || body["status"] != float64(status) || body["title"] != http.StatusText(status) || body["type"] != "about:blank" {
		t.Errorf("%d: %v, want %d", w.Code, body, status)
	}
	if detail, _ := body["detail"].(string); !strings.HasSuffix(detail, ".") {
		t.Errorf("detail %q", detail)
	}
	header := w.Header()
	if header.Get("Content-Type") != "application/problem+json" || header.Get("Content-Length") != "" || header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d: %v", status, header)
	}
	if later := header.Get("Retry-After"); (later != "") != (status == http.StatusServiceUnavailable) {
		t.Errorf("%d: Retry-After: %q", status, later)
	}
	return body
}
