// Package gormlockvet finds in the source of a program what gormlock cannot see while the program runs: locks that GORM
// drops before any plugin sees them, a db without the plugin, the outer db inside of a transaction, errors that nobody
// looks at, writes that go around a version.
//
//	go install github.com/gormlock/gormlock/gormlockvet/cmd/gormlockvet@latest
//	go vet -vettool=$(which gormlockvet) ./...
//
// Package golangci makes the same analyzers a plugin of golangci-lint. What is found is meant to be true: where the
// source does not show it, nothing is said. docs/gormlockvet.md has each finding, why it matters, and the cure.
package gormlockvet

import (
	"golang.org/x/tools/go/analysis"

	"github.com/gormlock/gormlock/gormlockvet/internal/findings/around"
	"github.com/gormlock/gormlock/gormlockvet/internal/findings/dropped"
	"github.com/gormlock/gormlock/gormlockvet/internal/findings/held"
	"github.com/gormlock/gormlock/gormlockvet/internal/findings/ignored"
	"github.com/gormlock/gormlock/gormlockvet/internal/findings/old"
	"github.com/gormlock/gormlock/gormlockvet/internal/findings/outer"
	"github.com/gormlock/gormlock/gormlockvet/internal/findings/retried"
	"github.com/gormlock/gormlock/gormlockvet/internal/findings/silenced"
	"github.com/gormlock/gormlock/gormlockvet/internal/findings/tags"
	"github.com/gormlock/gormlock/gormlockvet/internal/findings/uninstalled"
	"github.com/gormlock/gormlock/gormlockvet/internal/source"
)

var findings = []*analysis.Analyzer{
	around.Analyzer, dropped.Analyzer, held.Analyzer, ignored.Analyzer, old.Analyzer, outer.Analyzer, retried.Analyzer,
	tags.Analyzer, uninstalled.Analyzer,
}

var all = append(findings[:len(findings):len(findings)], silenced.New(findings))

// Analyzers returns all analyzers, by the names of their findings, and the one that looks after the comments that silence
// them.
func Analyzers() []*analysis.Analyzer { return append([]*analysis.Analyzer(nil), all...) }

// IncludeTests lets findings in files that end in _test.go be reported too. Tests play the rival, drop errors and hold
// locks on purpose, so by default they are left out. Call it before the analyzers run.
func IncludeTests(include bool) { source.TestFiles = include }
