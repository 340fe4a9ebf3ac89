package etag_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/etag"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/sessionlock"
)

func TestWriteError(t *testing.T) {
	t.Parallel()
	secret := errors.New(`pq: duplicate key "hunter2" in table salaries`)
	row := gormlock.StaleError{Table: "salaries", Op: "update", PrimaryKey: map[string]any{"name": "hunter2"}, Expected: int64(41), Actual: int64(4242)}
	gone := row
	gone.Deleted = true
	unread := errorOf(etag.Of(&doc{ID: 1}))
	for name, c := range map[string]struct {
		err    error
		status int
		reason string
	}{
		"stale":                  {&row, 412, "stale"},
		"stale, wrapped":         {fmt.Errorf("salaries: %w: %w", secret, &row), 412, "stale"},
		"stale, no row":          {gormlock.ErrStale, 412, "stale"},
		"gone":                   {&gone, 404, "gone"},
		"gone, wrapped":          {fmt.Errorf("salaries: %w", errors.Join(secret, &gone)), 404, "gone"},
		"all gone":               {errors.Join(&gone, &gone), 404, "gone"},
		"one is gone":            {errors.Join(&gone, &row), 412, "stale"},
		"another was changed":    {errors.Join(&gone, fmt.Errorf("x: %w", &gormlock.ConflictError{})), 412, "stale"},
		"another is stale":       {errors.Join(&gone, gormlock.ErrStale), 412, "stale"},
		"not found":              {fmt.Errorf("salaries: %w", gorm.ErrRecordNotFound), 404, "gone"},
		"no If-Match":            {fmt.Errorf("salaries: %w", etag.ErrRequired), 428, "required"},
		"both changed it":        {&gormlock.ConflictError{Columns: []gormlock.ColumnConflict{{Column: "title", Base: "hunter2", Mine: 41, Theirs: 4242}}}, 412, "stale"},
		"no version":             {gormlock.ErrVersionMissing, 428, "required"},
		"malformed":              {fmt.Errorf("%w: hunter2", etag.ErrMalformed), 400, "malformed"},
		"not acquired":           {gormlock.ErrNotAcquired, 409, "busy"},
		"fenced":                 {&gormlock.FencedError{Table: "salaries"}, 409, "fenced"},
		"another request":        {gormlock.ErrOtherRequest, 422, "reused"},
		"lock timeout":           {fmt.Errorf("salaries: %w", gormlock.ErrLockTimeout), 503, "timeout"},
		"a session lock is lost": {sessionlock.ErrLost, 503, "lost"},
		"a lease is lost":        {errors.Join(secret, lease.ErrLost), 503, "lost"},

		"none":                   {nil, 0, ""},
		"another":                {secret, 0, ""},
		"end of file":            {io.EOF, 0, ""},
		"a mistake, no version":  {etag.ErrNoVersion, 0, ""},
		"a mistake, not read":    {unread, 0, ""},
		"a mistake, no plugin":   {gormlock.ErrNotInstalled, 0, ""},
		"a mistake, an option":   {gormlock.ErrOption, 0, ""},
		"a mistake, transaction": {gormlock.ErrNoTransaction, 0, ""},
	} {
		w := httptest.NewRecorder()
		w.Header().Set("ETag", `"7"`)
		w.Header().Set("Content-Length", "5")
		if ours := etag.WriteError(w, c.err); ours != (c.status > 0) {
			t.Errorf("%s: %t", name, ours)
		}
		if c.status == 0 {
			if w.Body.Len() > 0 || w.Code != 200 || len(w.Header()) != 2 {
				t.Errorf("%s: something was written: %d %v %s", name, w.Code, w.Header(), w.Body)
			}
			continue
		}
		if w.Header().Get("ETag") != "" {
			t.Errorf("%s: the tag of what is not sent", name)
		}
		for _, word := range []string{"hunter2", "salaries", "41", "4242", "pq", "gormlock"} {
			if strings.Contains(strings.ReplaceAll(w.Body.String(), `"status":412`, ""), word) {
				t.Errorf("%s: %q is in the answer: %s", name, word, w.Body)
			}
		}
		body := mustBeProblem(t, w, c.status)
		if columns, named := body["columns"]; named != (name == "both changed it") || named && fmt.Sprint(columns) != "[title]" {
			t.Errorf("%s: columns %v", name, columns)
		}
		delete(body, "columns")
		if body["reason"] != c.reason || len(body) != 5 {
			t.Errorf("%s: %v", name, body)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

// What a complete handler answers, from the request to the row.
func TestWriteError_ofWrites(t *testing.T) {
	t.Parallel()
	db := open(t, &doc{})
	must(t, db.Create(&doc{ID: 1, Title: "a"}).Error)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expect, err := etag.IfMatch(r)
		if err == nil {
			err = db.Clauses(expect).Model(&doc{}).Where("id = ?", r.URL.Query().Get("id")).Update("title", "b").Error
		}
		if err != nil && !etag.WriteError(w, err) {
			t.Error(err)
		}
	})
	for _, c := range []struct {
		id     string
		lines  []string
		status int
	}{
		{"1", nil, 428},
		{"1", []string{``}, 400},
		{"1", []string{`1`}, 400},
		{"1", []string{`"2"`}, 412},
		{"1", []string{`W/"1"`}, 412},
		{"2", []string{`"1"`}, 404},
		{"2", []string{`*`}, 404},
		{"1", []string{`"1"`}, 200},
		{"1", []string{`"1"`}, 412},
		{"1", []string{`"1"`, `"2"`}, 200},
		{"1", []string{`*`}, 200},
	} {
		r := request(http.MethodPatch, "If-Match", c.lines...)
		r.URL.RawQuery = "id=" + c.id
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code != c.status {
			t.Errorf("%s, %q: %d, want %d: %s", c.id, c.lines, w.Code, c.status, w.Body)
		}
	}
	var now doc
	must(t, db.First(&now, 1).Error)
	if now.Version != 4 || now.Title != "b" {
		t.Errorf("%+v", now)
	}
}
