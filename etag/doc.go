// Package etag sends the version of a row to HTTP clients as an ETag, and checks it when it comes back in If-Match.
// So a client that decided on an old page cannot overwrite what somebody else has stored since.
//
//	func show(w http.ResponseWriter, r *http.Request) {
//		…
//		tag, err := etag.Of(&doc)
//		…
//		if etag.NotModified(w, r, tag) { // sets ETag, answers If-None-Match
//			return
//		}
//		…
//	}
//
//	func update(w http.ResponseWriter, r *http.Request) error {
//		expect, err := etag.IfMatch(r)
//		if err != nil {
//			return err // 428 or 400
//		}
//		return db.Clauses(expect).Model(&Document{ID: id}).Updates(form).Error // 412 where the row has another tag
//	}
//
//	if err := update(w, r); err != nil && !etag.WriteError(w, err) {
//		… // an error of yours
//	}
//
// # Tags
//
// The tag of a row is its version: "7", "2026-11-23T06:20:49.123456Z" for a time, "null" where Rails left NULL. The tag of
// a slice is a hash over the keys and versions of its rows in their order; it is for If-None-Match, and no row has it.
// All tags are strong, and they are compared by their octets, as RFC 9110 says: "07" is not "7".
//
// # What WriteError answers
//
//	error                                     HTTP                        gRPC
//	gormlock.ErrStale                         412 Precondition Failed     ABORTED
//	StaleError with Deleted                   404 Not Found               NOT_FOUND
//	gorm.ErrRecordNotFound                    404 Not Found               NOT_FOUND
//	ErrRequired, gormlock.ErrVersionMissing   428 Precondition Required   FAILED_PRECONDITION
//	ErrMalformed                              400 Bad Request             INVALID_ARGUMENT
//	gormlock.ErrNotAcquired                   409 Conflict                ABORTED
//	gormlock.ErrFenced                        409 Conflict                ABORTED
//	gormlock.ErrOtherRequest                  422 Unprocessable Entity    INVALID_ARGUMENT
//	gormlock.ErrLockTimeout                   503, with Retry-After       UNAVAILABLE
//	ErrLost of sessionlock and lease          503, with Retry-After       UNAVAILABLE
//	any other                                 nothing is written          UNKNOWN
//
// The codes of gRPC are a suggestion: this package does not answer by gRPC.
//
// # What is not guaranteed
//
//   - A tag says which version a row has, not how it is shown. Two representations of a row under one URL, such as JSON
//     and HTML, have one tag: give them URLs of their own.
//   - Middleware that compresses often makes a tag weak, W/"7". A weak tag never matches in If-Match, so every write is
//     then 412. Configure it to leave ETag alone, or put the version into the form.
//   - A time in a column without time zone needs its type in the model, `gorm:"type:timestamp"`. Without it every write is 412 if the
//     TimeZone of the connection is not UTC.
//   - The tag of a row does not change with its children, or with columns that are tagged unversioned: a client that has the row
//     gets 304 Not Modified. If these changes matter, move the version of the row: [gormlock.Touch].
//   - If-Unmodified-Since is ignored.
//
// # Stability
//
// This package may still change before v1: names may move or go.
package etag
