package main

import (
	"encoding/json"
	"errors"
	"log"
	"net/http"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/etag"
)

// server answers programs under /documents/{id}, and people under /documents/{id}/edit.
type server struct{ db *gorm.DB }

func (s server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /documents/{id}", answer(s.get))
	mux.Handle("PATCH /documents/{id}", answer(s.patch))
	mux.Handle("GET /documents/{id}/edit", answer(s.edit))
	mux.Handle("POST /documents/{id}/edit", answer(s.store))
	return http.NewCrossOriginProtection().Handler(mux)
}

// answer is a handler that may fail. What the error of a write means to a client is gormlock's to know.
func answer(handle func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := handle(w, r)
		switch {
		case err == nil, etag.WriteError(w, err):
		case errors.Is(err, errBadRequest):
			http.Error(w, err.Error(), http.StatusBadRequest)
		default:
			log.Println(err)
			http.Error(w, "something is wrong here", http.StatusInternalServerError)
		}
	})
}

// read is the document of a request, and its tag.
func (s server) read(r *http.Request) (doc Document, tag string, err error) {
	key, err := id(r)
	if err != nil {
		return doc, "", err
	}
	if err := s.db.WithContext(r.Context()).First(&doc, key).Error; err != nil {
		return doc, "", err
	}
	tag, err = etag.Of(&doc)
	return doc, tag, err
}

func (s server) get(w http.ResponseWriter, r *http.Request) error {
	doc, tag, err := s.read(r)
	if err != nil || etag.NotModified(w, r, tag) {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(doc.Fields)
}

// patch stores what a program sends, if the document is as the program has read it.
func (s server) patch(w http.ResponseWriter, r *http.Request) error {
	key, err := id(r)
	if err != nil {
		return err
	}
	expect, err := etag.IfMatch(r)
	if err != nil {
		return err
	}
	changes, err := readPatch(w, r)
	if err != nil {
		return err
	}
	doc := Document{ID: key}
	if err := s.db.WithContext(r.Context()).Clauses(expect).Model(&doc).Updates(changes).Error; err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// edit is the page on which a person edits the document. It carries what it showed, and its version.
func (s server) edit(w http.ResponseWriter, r *http.Request) error {
	doc, tag, err := s.read(r)
	if err != nil || etag.NotModified(w, r, tag) {
		return err
	}
	w.Header().Set("Cache-Control", "no-cache") // it may be kept, and is asked for by its tag
	return editPage.Execute(w, page{Base: doc, Saved: r.URL.Query().Has("saved")})
}

// store stores what a person has typed. What only this person changed is written on the document as it is now. Where
// somebody else has changed the same field meanwhile, the person sees both versions.
func (s server) store(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, largestBody)
	base, mine, err := readForm(r)
	if err != nil {
		return err
	}
	typed := mine
	err = gormlock.SaveMerged(s.db.WithContext(r.Context()), &mine, &base)
	var conflict *gormlock.ConflictError
	switch {
	case errors.As(err, &conflict):
		return s.merge(w, r, base.Fields, typed.Fields)
	case err != nil:
		return err
	}
	http.Redirect(w, r, r.URL.Path+"?saved", http.StatusSeeOther)
	return nil
}

// merge shows the document as it is now beside what the person typed. Nothing is stored, and what was typed is not lost.
func (s server) merge(w http.ResponseWriter, r *http.Request, base, mine Fields) error {
	theirs, _, err := s.read(r)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusConflict)
	return mergePage.Execute(w, page{Base: theirs, Rows: compare(base, mine, theirs.Fields)})
}
