package etag

import (
	"errors"
	"net/http"

	"github.com/gormlock/gormlock/internal/guard"
)

// ErrRequired is the error of a request that names no version, for it has no If-Match: 428 Precondition Required.
var ErrRequired = errors.New("gormlock: If-Match is missing")

// Precondition is the clause that [IfMatch] makes of a request. It goes where [gormlock.ExpectVersion] does: into db.Clauses
// and gorm.G, and its method ModifyStatement into the Scopes of the generics API.
type Precondition struct{ preconditions }

// preconditions hides how the clause gets into a statement.
type preconditions = guard.Clause

// IfMatch returns a clause that lets one update or delete write only a row that has one of the tags in If-Match, whatever
// version the struct holds:
//
//	db.Clauses(expect).Model(&Document{ID: id}).Updates(form)
//
// A row that has another tag is gormlock.ErrStale, as is one that is gone, for `*` too: that asks for any version of a row
// that is there. So is a tag that this row cannot have, and a weak one, W/"7", which never matches. Tags are compared in
// the statement itself. It belongs on the write: reads and creates compare nothing, and fail with it.
//
// A request without If-Match is [ErrRequired], one that is malformed [ErrMalformed]. The clause that comes with an error
// fails every statement.
func IfMatch(r *http.Request) (Precondition, error) {
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

// NotModified sets ETag, and reports whether it has answered the request: then the handler is done. An empty tag stands for
// what is not there, sets nothing and matches nothing. So it answers:
//
//   - 304 Not Modified to GET and HEAD, where If-None-Match has the tag or is `*`; 412 Precondition Failed to other methods.
//     Weak tags match here. A malformed If-None-Match is no condition of a GET or HEAD, and 400 for other methods.
//   - 412 to GET and HEAD, where If-Match lacks the tag, and 400 where it is malformed. Of other methods [IfMatch] heeds it,
//     in the write.
//   - 500 where the tag is none, `7` without its quotes: the ETag would be ignored by everybody.
//
// It looks before the write and holds nothing: a PUT with If-None-Match: * that is to create a row still needs the INSERT
// to fail where there is one by then.
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
