package stand

import (
	"net/http"

	"github.com/gormlock/gormlock/etag"
)

// IfMatch is the clause of a request with these lines of If-Match. If they are invalid, it fails every statement.
func IfMatch(lines ...string) etag.Precondition {
	expect, _ := etag.IfMatch(&http.Request{Header: http.Header{"If-Match": lines}})
	return expect
}
