package etag

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/holder"
)

// problem is the body of an answer as RFC 9457 defines it. It has texts of its own, because the text of an error may name rows, or
// contain what the database said.
type problem struct {
	Type    string   `json:"type"`
	Title   string   `json:"title"`
	Status  int      `json:"status"`
	Detail  string   `json:"detail"`
	Reason  string   `json:"reason,omitempty"`  // one word, for programs
	Columns []string `json:"columns,omitempty"` // that both sides have changed
	later   bool
}

func newProblem(status int, reason, detail string) problem {
	return problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Reason: reason,
		later: status == http.StatusServiceUnavailable,
	}
}

var (
	stale     = newProblem(http.StatusPreconditionFailed, "stale", "It was changed since you read it, or it never had the version you named. Read it again.")
	exists    = newProblem(http.StatusPreconditionFailed, "exists", "It is there, in a version that If-None-Match excludes.")
	gone      = newProblem(http.StatusNotFound, "gone", "It is not there, or not any more.")
	required  = newProblem(http.StatusPreconditionRequired, "required", "Say which version you have read: send its ETag in If-Match.")
	malformed = newProblem(http.StatusBadRequest, "malformed", `If-Match and If-None-Match have one form, * or a list of tags in quotes: "7", "8".`)
	busy      = newProblem(http.StatusConflict, "busy", "Somebody else holds the lock that this needs. Try again.")
	fenced    = newProblem(http.StatusConflict, "fenced", "Somebody else has taken this over.")
	reused    = newProblem(http.StatusUnprocessableEntity, "reused", "The key of this request was used before, for another request.")
	timeout   = newProblem(http.StatusServiceUnavailable, "timeout", "The lock that this needs was not granted in time. Try again.")
	lost      = newProblem(http.StatusServiceUnavailable, "lost", "The lock that this needs was lost on the way. Try again.")
	badTag    = newProblem(http.StatusInternalServerError, "", "The server made no tag that can be sent.")
)

// retryAfter is how many seconds a client should wait.
const retryAfter = 1

// WriteError answers with the status that an error of gormlock stands for, as the documentation of the package lists
// it, and a problem of RFC 9457. It reports false if the error is nil or not from gormlock: then nothing was written.
// The answer says what kind of conflict it was, in a word for programs as well ("reason"), and names the columns of a
// [gormlock.ConflictError] ("columns"). It has no values, no names of tables, and no text of the error.
func WriteError(w http.ResponseWriter, err error) bool {
	p, ours := problemOf(err)
	if ours {
		header := w.Header()
		for _, name := range []string{"ETag", "Last-Modified"} { // they belong to the body that is not sent
			header.Del(name)
		}
		p.write(w)
	}
	return ours
}

func problemOf(err error) (p problem, ours bool) {
	if errors.Is(err, ErrNoVersion) { // the program has made a mistake, not the client
		return problem{}, false
	}
	for _, known := range []struct {
		err error
		is  problem
	}{
		{ErrMalformed, malformed}, {ErrRequired, required},
		{gormlock.ErrFenced, fenced}, {gormlock.ErrStale, staleOrGone(err)},
		{holder.ErrLost, lost}, {gormlock.ErrLockTimeout, timeout}, {gormlock.ErrNotAcquired, busy},
		{gormlock.ErrOtherRequest, reused}, {gormlock.ErrVersionMissing, required}, {gorm.ErrRecordNotFound, gone},
	} {
		if errors.Is(err, known.err) {
			return known.is, true
		}
	}
	return problem{}, false
}

// staleOrGone is the answer for ErrStale. If it is known which columns both sides changed, it names them.
func staleOrGone(err error) problem {
	if allGone(err) {
		return gone
	}
	answer := stale
	var conflict *gormlock.ConflictError
	if errors.As(err, &conflict) {
		for _, column := range conflict.Columns {
			answer.Columns = append(answer.Columns, column.Column)
		}
	}
	return answer
}

// allGone reports whether each row that a write found stale is gone.
func allGone(err error) bool {
	var rows, there int
	var visit func(error)
	visit = func(err error) {
		if row, is := err.(*gormlock.StaleError); is { //nolint:errorlint // each is looked at
			rows++
			if !row.Deleted {
				there++
			}
			return
		}
		switch wrapper := err.(type) { //nolint:errorlint // each is looked at
		case interface{ Unwrap() error }:
			visit(wrapper.Unwrap())
		case interface{ Unwrap() []error }:
			for _, one := range wrapper.Unwrap() {
				visit(one)
			}
		default: // nothing says that this row is gone
			if errors.Is(err, gormlock.ErrStale) {
				there++
			}
		}
	}
	visit(err)
	return rows > 0 && there == 0
}

func (p problem) write(w http.ResponseWriter) {
	header := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding"} {
		header.Del(name)
	}
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	if p.later {
		header.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client is gone, or it was HEAD
}
