package inspect

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
)

// contentPolicy lets the page's own style and script through, by their hashes, and
// nothing else: what slips through as markup could neither run nor load anything.
var contentPolicy = "default-src 'none'; style-src " + hash(pageCSS) + "; script-src " + hash(pageJS) +
	"; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"span": span, "who": who, "cut": cut,
	"age":     func(now, since time.Time) string { return span(now.Sub(since)) },
	"clock":   func(t time.Time) string { return t.UTC().Format("15:04:05") },
	"version": func(n int) string { return fmt.Sprintf("%d.%d", n/10000, n%10000) },
	"number":  number,
	"at":      func(now time.Time, s *Session) sessionAt { return sessionAt{s, now} },
	"stamp":   func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
}).Parse(pageHTML))

// sessionAt is a session and the time at which it was seen.
type sessionAt struct {
	*Session
	Now time.Time
}

// number is an integer with commas between thousands.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// shown is what the template gets.
type shown struct {
	*View
	CSS     template.CSS
	JS      template.JS
	Refresh int64 // milliseconds
	Failure string
	Silent  time.Duration // for how long the server cannot be reached
	Did     string

	Waits, Held []*Lock
	Longest     time.Duration
	Blocking    int // sessions that others wait for and that wait for nobody
	Rings       int // sessions that wait in a circle
	Full        int // percent of the lock table
	Graph       *graph
	Plots       []plot

	CanCancel bool
	Token     string
}

// serveHTML answers with the page, and with 503 where there is nothing to show yet.
func (p *Page) serveHTML(w http.ResponseWriter, r *http.Request) {
	state, samples, err := p.look(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	s := show(state, samples)
	s.CSS, s.JS, s.Refresh = template.CSS(pageCSS), template.JS(pageJS), p.refresh.Milliseconds()
	s.Did = did(r.URL.Query())
	if p.authorize != nil && p.authorize(r) {
		s.CanCancel, s.Token = true, csrfToken(w, r)
	}
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, s); err != nil {
		http.Error(w, "gormlock: inspect: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if state.failure != nil || state.view == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(page.Bytes()) // who has gone does not miss it
}

func show(state state, samples []Sample) *shown {
	s := &shown{View: state.view}
	if state.failure != nil {
		s.Failure, s.Silent = state.failure.Error(), time.Since(state.since)
	}
	if s.View == nil {
		return s
	}
	tree := Tree(s.View)
	for i := range s.Locks {
		l := &s.Locks[i]
		switch {
		case !l.Granted:
			s.Waits = append(s.Waits, l)
			if !l.Since.IsZero() {
				s.Longest = max(s.Longest, s.Taken.Sub(l.Since))
			}
		default:
			s.Held = append(s.Held, l)
		}
	}
	for _, n := range tree {
		if n.Wait == nil {
			s.Blocking++
		}
	}
	s.Rings = rings(tree)
	s.Full = min(100, s.Server.Locks*100/max(s.Server.Room, 1))
	s.Graph = drawGraph(tree, s.Taken)
	s.Plots = drawPlots(samples)
	return s
}

func rings(nodes []*Node) int {
	count := 0
	for _, n := range nodes {
		if n.Cycle {
			count++
		}
		count += rings(n.Waiters)
	}
	return count
}

// serveJSON answers with the view, its tree and the history, or with the error alone.
func (p *Page) serveJSON(w http.ResponseWriter, r *http.Request) {
	state, samples, err := p.look(r.Context())
	if err == nil {
		err = state.failure
	}
	if err == nil && state.view == nil {
		err = errSilent
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()}) // who has gone does not miss it
		return
	}
	tree := Tree(state.view)
	if tree == nil {
		tree = []*Node{}
	}
	_ = json.NewEncoder(w).Encode(struct {
		*View
		Tree    []*Node  `json:"tree"`
		History []Sample `json:"history"`
	}{state.view, tree, samples})
}

// prefersJSON reports whether the client would rather have JSON than HTML.
func prefersJSON(h http.Header) bool {
	var asJSON, asHTML float64
	for _, field := range h.Values("Accept") {
		for item := range strings.SplitSeq(field, ",") {
			kind, parameters, err := mime.ParseMediaType(item)
			if err != nil {
				continue
			}
			q := 1.0
			if text, ok := parameters["q"]; ok {
				if q, err = strconv.ParseFloat(text, 64); err != nil {
					q = 0
				}
			}
			switch kind {
			case "application/json":
				asJSON = max(asJSON, q)
			case "text/html", "application/xhtml+xml":
				asHTML = max(asHTML, q)
			}
		}
	}
	return asJSON > asHTML
}
