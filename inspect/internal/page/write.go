package page

import (
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"time"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

// Policy is the page's Content-Security-Policy. It allows only the page's own style and script, by their hashes. Injected markup could neither run
// nor load anything.
var Policy = "default-src 'none'; style-src " + hash(pageCSS) + "; script-src " + hash(pageJS) +
	"; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"span": Span, "cut": cut, "number": number,
	"clock":   func(t time.Time) string { return t.UTC().Format("15:04:05") },
	"version": func(n int) string { return fmt.Sprintf("%d.%d", n/10000, n%10000) },
	"stamp":   func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"graph":   drawGraph,
	"plots":   drawPlots,
	"ending":  func(token, place string, s Session) ending { return ending{token, place, s} },
	"css":     func() template.CSS { return template.CSS(pageCSS) },
	"js":      func() template.JS { return template.JS(pageJS) },
}).Parse(pageHTML))

// ending is a form that ends a session.
type ending struct {
	Token string
	Place string // unique in the page
	Session
}

// Write writes the page.
func Write(w io.Writer, c *Content) error { return pageTemplate.Execute(w, c) }
