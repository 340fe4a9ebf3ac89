package etag_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/etag"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// A Document is edited by people who look at it for minutes.
type Document struct {
	ID      int64
	Title   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// documents answers GET and PATCH of documents.
type documents struct{ db *gorm.DB }

func (d documents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error
	if r.Method == http.MethodPatch {
		err = d.patch(r)
	} else {
		err = d.get(w, r)
	}
	if err != nil && !etag.WriteError(w, err) {
		http.Error(w, "something is wrong here", http.StatusInternalServerError)
	}
}

func (d documents) get(w http.ResponseWriter, r *http.Request) error {
	var doc Document
	if err := d.db.First(&doc, 1).Error; err != nil {
		return err
	}
	tag, err := etag.Of(&doc)
	if err != nil || etag.NotModified(w, r, tag) {
		return err
	}
	_, err = fmt.Fprint(w, doc.Title)
	return err
}

func (d documents) patch(r *http.Request) error {
	expect, err := etag.IfMatch(r)
	if err != nil {
		return err
	}
	var form struct{ Title string }
	if err := json.NewDecoder(r.Body).Decode(&form); err != nil {
		return err
	}
	return d.db.Clauses(expect).Model(&Document{ID: 1}).Updates(form).Error
}

// Two clients read a document, and both change it.
func Example() {
	t := pgtest.NewExample() // a PostgreSQL, and an empty schema in it
	defer t.End()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	if err := errors.Join(db.AutoMigrate(&Document{}), db.Create(&Document{Title: "draft"}).Error); err != nil {
		fmt.Println(err)
		return
	}
	ask := func(method, header, value, body string) {
		r := httptest.NewRequest(method, "/documents/1", strings.NewReader(body))
		if header != "" {
			r.Header.Set(header, value)
		}
		w := httptest.NewRecorder()
		documents{db}.ServeHTTP(w, r)
		fmt.Println(strings.TrimSpace(fmt.Sprint(w.Code, " ", w.Header().Get("ETag"), " ", w.Body)))
	}
	ask("GET", "", "", "")
	ask("GET", "If-None-Match", `"1"`, "")
	ask("PATCH", "If-Match", `"1"`, `{"title": "Ann's"}`)
	ask("PATCH", "If-Match", `"1"`, `{"title": "Bob's"}`) // Bob saw the same version as Ann
	ask("PATCH", "", "", `{"title": "Bob's"}`)
	ask("GET", "", "", "")
	// Output:
	// 200 "1" draft
	// 304 "1"
	// 200
	// 412  {"type":"about:blank","title":"Precondition Failed","status":412,"detail":"It was changed since you read it, or it never had the version you named. Read it again.","reason":"stale"}
	// 428  {"type":"about:blank","title":"Precondition Required","status":428,"detail":"Say which version you have read: send its ETag in If-Match.","reason":"required"}
	// 200 "2" Ann's
}

func ExampleOf() {
	for _, value := range []any{
		&Document{ID: 7, Version: 3},
		[]Document{{ID: 7, Version: 3}, {ID: 8, Version: 1}},
		&Document{ID: 7}, // it was not read
	} {
		tag, err := etag.Of(value)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(tag)
	}
	// Output:
	// "3"
	// "rows-S8aEbAy-xy744mUKQcONWA"
	// gormlock: there is no version to make a tag of: the Document was not read from its row, its version is zero, or was taken back with a transaction: version missing
}

func ExampleIfMatch() {
	r := httptest.NewRequest(http.MethodPut, "/documents/1", nil)
	for _, line := range []string{"", "7", `"6", "7"`} {
		if line != "" {
			r.Header.Set("If-Match", line)
		}
		if _, err := etag.IfMatch(r); err != nil { // otherwise db.Clauses(expect).Model(&doc).Updates(form)
			fmt.Println(err)
			continue
		}
		fmt.Println("a clause for", line)
	}
	// Output:
	// gormlock: If-Match is missing
	// gormlock: malformed entity tags: If-Match may list nothing but "…" and W/"…"
	// a clause for "6", "7"
}

func ExampleNotModified() {
	r := httptest.NewRequest(http.MethodGet, "/documents/1", nil)
	r.Header.Set("If-None-Match", `W/"3"`) // a cache has made it weak
	w := httptest.NewRecorder()
	fmt.Println(etag.NotModified(w, r, `"3"`), w.Code)
	w = httptest.NewRecorder()
	fmt.Println(etag.NotModified(w, r, `"4"`), w.Header().Get("ETag"))
	// Output:
	// true 304
	// false "4"
}

func ExampleWriteError() {
	w := httptest.NewRecorder()
	err := fmt.Errorf("store the form: %w", &gormlock.StaleError{Table: "documents", Expected: int64(6), Actual: int64(7)})
	if etag.WriteError(w, err) {
		fmt.Println("answered", w.Code)
	}
	if !etag.WriteError(httptest.NewRecorder(), errors.New("disk full")) {
		fmt.Println("yours to answer")
	}
	// Output:
	// answered 412
	// yours to answer
}
