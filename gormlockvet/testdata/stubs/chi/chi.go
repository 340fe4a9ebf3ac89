// Package chi has the names of the router chi that the programs need.
package chi

import "net/http"

// Router routes.
type Router interface {
	Use(middlewares ...func(http.Handler) http.Handler)
	Get(pattern string, h http.HandlerFunc)
	Post(pattern string, h http.HandlerFunc)
	Put(pattern string, h http.HandlerFunc)
}

// URLParam returns a part of the path.
func URLParam(r *http.Request, name string) string { return "" }
