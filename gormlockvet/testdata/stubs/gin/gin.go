// Package gin has the names of the framework gin that the programs need.
package gin

import "net/http"

// H is a map.
type H map[string]any

// HandlerFunc handles a request.
type HandlerFunc func(*Context)

// Context is a request and its answer.
type Context struct {
	Request *http.Request
	Writer  http.ResponseWriter
}

// JSON answers.
func (c *Context) JSON(code int, obj any) {}

// AbortWithStatusJSON answers, and nothing else does.
func (c *Context) AbortWithStatusJSON(code int, obj any) {}

// ShouldBindJSON reads the request.
func (c *Context) ShouldBindJSON(obj any) error { return nil }

// Param returns a part of the path.
func (c *Context) Param(name string) string { return "" }

// Set keeps a value.
func (c *Context) Set(key string, value any) {}

// MustGet returns a kept value.
func (c *Context) MustGet(key string) any { return nil }

// Next runs what comes after.
func (c *Context) Next() {}

// Engine routes.
type Engine struct{}

// POST routes.
func (e *Engine) POST(path string, h ...HandlerFunc) {}

// GET routes.
func (e *Engine) GET(path string, h ...HandlerFunc) {}
