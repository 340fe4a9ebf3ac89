package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"gorm.io/gorm"
)

// Fields are what people change in a document.
type Fields struct {
	Title   string
	Body    string
	Reviews int64
}

// Document is edited by people who look at it for minutes.
type Document struct {
	ID int64
	Fields
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// id is the document that a request is about.
func id(r *http.Request) (int64, error) {
	n, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return 0, gorm.ErrRecordNotFound
	}
	return n, nil
}

// errBadRequest is the error of a request that makes no sense.
var errBadRequest = errors.New("bad request")

// patch is what a PATCH may change: what is not in it stays.
type patch struct {
	Title, Body *string
	Reviews     *int64
}

func readPatch(w http.ResponseWriter, r *http.Request) (patch, error) {
	var p patch
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, largestBody))
	decoder.DisallowUnknownFields() // a client may name what it likes, and the version, too
	if err := decoder.Decode(&p); err != nil {
		return patch{}, fmt.Errorf("%w: %w", errBadRequest, err)
	}
	if p == (patch{}) {
		return patch{}, fmt.Errorf("%w: it changes nothing", errBadRequest)
	}
	return p, nil
}

const largestBody = 1 << 20

// readForm is the document as the page showed it, and as the person wants it.
func readForm(r *http.Request) (base, mine Document, err error) {
	if base.ID, err = id(r); err != nil {
		return base, mine, err
	}
	base.Version, err = strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	if err != nil {
		return base, mine, fmt.Errorf("%w: %w", errBadRequest, err)
	}
	mine = base
	if base.Fields, err = readFields(r, "base."); err == nil {
		mine.Fields, err = readFields(r, "")
	}
	return base, mine, err
}

// readFields are the fields in a form whose names begin so: "" for what the user typed, "base." for what the page showed.
func readFields(r *http.Request, prefix string) (Fields, error) {
	text := func(name string) string { // a browser sends lines as CR LF
		return strings.ReplaceAll(r.PostFormValue(prefix+name), "\r\n", "\n")
	}
	reviews, err := strconv.ParseInt(text("reviews"), 10, 64)
	if err != nil {
		return Fields{}, fmt.Errorf("%w: %w", errBadRequest, err)
	}
	return Fields{Title: text("title"), Body: text("body"), Reviews: reviews}, nil
}
