package etag_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/etag"
)

// send sends a request as given, with these header lines, and returns the status and the response.
func send(t *testing.T, server *httptest.Server, method, path string, lines ...string) (status int, answer *http.Response) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	request := method + " " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n" + strings.Join(append(lines, ""), "\r\n") + "\r\n"
	go func() { _, _ = conn.Write([]byte(request)) }() // the server may answer before it has read everything
	r := &http.Request{Method: method}
	answer, err = http.ReadResponse(bufio.NewReader(conn), r)
	must(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer.StatusCode, answer
}

// What clients send, octet by octet, and what they get from a server.
func TestOverTheWire(t *testing.T) {
	t.Parallel()
	db := open(t, &doc{})
	must(t, db.Create(&doc{ID: 7, Title: "a", Version: 1}).Error)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := strings.TrimPrefix(r.URL.Path, "/")
		var row doc
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodPut:
			tag := ""
			if db.Limit(1).Find(&row, id).RowsAffected == 1 {
				tag = tagOf(t, &row)
			}
			if etag.NotModified(w, r, tag) {
				return
			}
			if tag == "" && r.Method != http.MethodPut {
				w.WriteHeader(http.StatusNotFound)
			}
		default:
			expect, err := etag.IfMatch(r)
			if err == nil {
				err = db.Clauses(expect).Model(&doc{}).Where("id = ?", id).Updates(map[string]any{"title": "b", "version": 1}).Error
			}
			if err != nil && !etag.WriteError(w, err) {
				t.Error(err)
				w.WriteHeader(http.StatusInternalServerError)
			}
		}
	}))
	t.Cleanup(server.Close)
	long := strings.Repeat("x", 700)
	for _, c := range []struct {
		method, path string
		lines        []string
		status       int
	}{
		{"PATCH", "/7", []string{"If-Match: \"\xff\xfe\""}, 412},
		{"PATCH", "/7", []string{"If-Match: \"ü\", \"日本\""}, 412},
		{"PATCH", "/7", []string{`If-Match: "1' OR 1=1 --"`}, 400}, // a tag cannot contain a blank
		{"PATCH", "/7", []string{`If-Match: "1'OR/**/1=1--"`}, 412},
		{"PATCH", "/7", []string{`If-Match: "01", "+1", "1.0", "1e0", "0x1", "１"`}, 412},
		{"PATCH", "/7", []string{`If-Match: "9223372036854775808", "-1", "0", "", "null"`}, 412},
		{"PATCH", "/7", []string{`If-Match: ""1""`}, 400},
		{"PATCH", "/7", []string{`If-Match: "\"1\""`}, 400},
		{"PATCH", "/7", []string{`If-Match:`}, 400},
		{"PATCH", "/7", []string{`If-Match: "1`, `If-Match: "`}, 400},
		{"PATCH", "/7", []string{`If-Match: *`, `If-Match: "1"`}, 400},
		{"PATCH", "/7", []string{"If-Match: " + strings.Repeat(`"`+long+`",`, 1000)}, 412},
		{"PATCH", "/7", []string{"If-Match: " + strings.Repeat(`"2",`, 1001)}, 400},
		{"PATCH", "/7", []string{"If-Match: " + strings.Repeat(`"`+long+`",`, 2000)}, 431}, // the server's own limit
		{"PATCH", "/8", []string{`If-Match: "1"`}, 404},
		{"PATCH", "/8", []string{`If-Match: *`}, 404},
		{"PATCH", "/7", nil, 428},
		{"PATCH", "/7", []string{`if-match: , ,"2", ,`, "IF-MATCH:\t,\"\xff\",\t\"1\"\t,,"}, 200}, // the tag is "2" from now on
		{"PATCH", "/7", []string{`If-Match: "1"`}, 412},

		{"GET", "/7", []string{`If-None-Match: "2"`}, 304},
		{"HEAD", "/7", []string{`If-None-Match: "1", W/"2"`}, 304},
		{"HEAD", "/7", []string{`If-None-Match: "\xff"`}, 200},
		{"HEAD", "/7", []string{`If-Match: "1"`}, 412},
		{"HEAD", "/7", []string{`If-Match: 1`}, 400},
		{"GET", "/7", []string{`If-None-Match: 2`}, 200},
		{"GET", "/7", []string{"If-None-Match: \"ü\"", "If-None-Match: \"2\""}, 304},
		{"GET", "/8", []string{`If-None-Match: *`}, 404},
		{"HEAD", "/8", []string{`If-None-Match: *`}, 404},
		{"PUT", "/7", []string{`If-None-Match: *`}, 412},
		{"PUT", "/8", []string{`If-None-Match: *`}, 200},
	} {
		status, answer := send(t, server, c.method, c.path, c.lines...) //nolint:bodyclose // t.Cleanup does
		name := fmt.Sprintf("%s %s %.80q", c.method, c.path, c.lines)
		if status != c.status {
			t.Errorf("%s: %d, want %d", name, status, c.status)
		}
		body := make([]byte, 1)
		n, _ := answer.Body.Read(body)
		if hasBody := status >= 400 && status != 431 && c.method != "HEAD" && (c.method != "GET" || status != 404); status != 431 && (n > 0) != hasBody {
			t.Errorf("%s: a body: %t", name, n > 0)
		}
		if tag := answer.Header.Get("ETag"); c.path == "/7" && (status == 304 || status == 200 && c.method != "PATCH") && tag != `"2"` {
			t.Errorf("%s: the tag is %q", name, tag)
		}
	}
	var now doc
	must(t, db.First(&now, 7).Error)
	if now.Title != "b" || now.Version != 2 {
		t.Errorf("%+v", now)
	}
}
