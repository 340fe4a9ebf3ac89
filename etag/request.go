package etag

import (
	"errors"
	"net/http"

	"github.com/gormlock/gormlock/internal/guard"
)

// ErrRequired is the error of a request without If-Match, which names no version: 428 Precondition Required.
var ErrRequired = errors.New("gormlock: If-Match is missing")

// Precondition is the clause that [IfMatch] makes from a request. Use it like [gormlock.ExpectVersion]: in db.Clauses
// and gorm.G, and its method ModifyStatement in the Scopes of the generics API.
type Precondition struct{ preconditions }

// preconditions hides how the clause gets into a statement.
type preconditions = guard.Clause

// IfMatch returns a clause that lets one update or delete write only a row that has one of the tags in If-Match, whatever
// version the struct holds:
//
//	db.Clauses(expect).Model(&Document{ID: id}).Updates(form)
//
// A row that has another tag is gormlock.ErrStale. So is a row that is gone, even for `*`, which stands for any version
// of an existing row. So is a tag that this row cannot have, and a weak one, W/"7", which never matches. The statement
// itself compares the tags. Put the clause on the write: reads and creates compare nothing, and fail with it.
//
// A request without If-Match is [ErrRequired], one that is malformed [ErrMalformed]. The clause that comes with an error
// fails every statement.
func IfMatch(r *http.Request) (Precondition, error) {
	if r == nil {
		return Precondition{}, errors.New("gormlock: etag: IfMatch of a nil request")
	}
	lines := r.Header.Values("If-Match")
	if len(lines) == 0 {
		return Precondition{}, ErrRequired
	}
	w, err := parseTags("If-Match", lines)
	switch {
	case err != nil:
		return Precondition{}, err
	case w.any:
		return Precondition{guard.ExpectRow()}, nil
	}
	return Precondition{guard.ExpectTags(w.tags)}, nil
}

// NotModified sets ETag, and reports whether it has answered the request. If it has, the handler is done. An empty tag
// stands for a missing row: it sets nothing and matches nothing. The answers are:
//
//   - If If-None-Match has the tag or is `*`: 304 Not Modified to GET and HEAD, 412 Precondition Failed to other
//     methods. Weak tags match here. A malformed If-None-Match is ignored for GET and HEAD, and 400 for other methods.
//   - If If-Match lacks the tag: 412 to GET and HEAD, and 400 if it is malformed. For other methods [IfMatch] compares
//     it in the write.
//   - 500 if the tag is malformed, such as `7` without its quotes: every client would ignore the ETag.
//
// It compares before the write, and locks nothing. For a PUT with If-None-Match: * that creates a row, the INSERT itself
// must fail if somebody has created the row meanwhile.
func NotModified(w http.ResponseWriter, r *http.Request, tag string) bool {
	if tag == "" {
		return false
	}
	if tagLength(tag) != len(tag) {
		badTag.write(w)
		return true
	}
	w.Header().Set("ETag", tag)
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if lines := r.Header.Values("If-Match"); reads && len(lines) > 0 {
		asked, err := parseTags("If-Match", lines)
		if err != nil {
			return WriteError(w, err)
		}
		if !asked.hasStrongly(tag) {
			stale.write(w)
			return true
		}
	}
	lines := r.Header.Values("If-None-Match")
	if len(lines) == 0 {
		return false
	}
	known, err := parseTags("If-None-Match", lines)
	switch {
	case err != nil && reads:
		return false
	case err != nil:
		return WriteError(w, err)
	case !known.hasWeakly(tag):
		return false
	case reads:
		header := w.Header()
		for _, name := range []string{"Content-Type", "Content-Length", "Content-Encoding"} { // of a body that is not sent
			header.Del(name)
		}
		w.WriteHeader(http.StatusNotModified)
	default:
		exists.write(w)
	}
	return true
}
