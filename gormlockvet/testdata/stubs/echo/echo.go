// Package echo has the names of the framework echo that the programs need.
package echo

import "net/http"

// Context is a request and its answer.
type Context interface {
	Request() *http.Request
	Bind(i any) error
	Param(name string) string
	JSON(code int, i any) error
	NoContent(code int) error
}

// HandlerFunc handles a request.
type HandlerFunc func(c Context) error

// MiddlewareFunc is put around handlers.
type MiddlewareFunc func(next HandlerFunc) HandlerFunc

// Echo routes.
type Echo struct{}

// POST routes.
func (e *Echo) POST(path string, h HandlerFunc, m ...MiddlewareFunc) {}

// NewHTTPError is an error with a status.
func NewHTTPError(code int, message ...any) error { return nil }
