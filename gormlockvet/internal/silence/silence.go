// Package silence reads the comments that silence a finding on one line:
//
//	//gormlockvet:ignore held the rate limit of the partner is one call a second, and nobody else waits for this lock
//
// A comment stands at the end of the line, or alone on the line before it. It names the finding and gives a reason.
package silence

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/analysis"
)

const marker = "//gormlockvet:ignore"

// Comment silences findings on one line.
type Comment struct {
	At     *ast.Comment
	Names  []string
	Reason string
	used   []string
}

// Comments are those of a package. Several analyzers ask at once.
type Comments struct {
	mu     sync.Mutex
	byLine map[place]*Comment
	all    []*Comment
}

type place struct {
	file string
	line int
}

// Read finds the comments of a package.
func Read(pass *analysis.Pass) *Comments {
	c := &Comments{byLine: map[place]*Comment{}}
	for _, file := range pass.Files {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if strings.HasPrefix(comment.Text, marker) {
					c.add(pass, file, comment)
				}
			}
		}
	}
	return c
}

func (c *Comments) add(pass *analysis.Pass, file *ast.File, at *ast.Comment) {
	rest := strings.TrimPrefix(at.Text, marker)
	if i := strings.Index(rest, "// want"); i >= 0 { // a test's own comment behind it
		rest = rest[:i]
	}
	if rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return // another word
	}
	names, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
	comment := &Comment{At: at, Reason: strings.TrimSpace(reason)}
	if names != "" {
		comment.Names = strings.Split(names, ",")
	}
	position := pass.Fset.Position(at.Pos())
	line := position.Line
	if alone(pass, file, at) {
		line++
	}
	c.byLine[place{position.Filename, line}] = comment
	c.all = append(c.all, comment)
}

// alone reports whether nothing but blanks stands before the comment on its line.
func alone(pass *analysis.Pass, file *ast.File, at *ast.Comment) bool {
	tokens := pass.Fset.File(file.FileStart)
	start := tokens.LineStart(tokens.Line(at.Pos()))
	found := true
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil || !found || n.Pos() >= at.Pos() || n.End() <= start {
			return false
		}
		switch n.(type) {
		case *ast.File, *ast.CommentGroup, *ast.Comment:
			return n == ast.Node(file)
		}
		if n.Pos() >= start && n.Pos() < at.Pos() || n.End() > start && n.End() <= at.Pos() {
			found = false
		}
		return found
	})
	return found
}

// Silences reports whether a comment silences the finding at a place, and remembers that it did.
func (c *Comments) Silences(fset *token.FileSet, pos token.Pos, name string) bool {
	at := fset.Position(pos)
	c.mu.Lock()
	defer c.mu.Unlock()
	comment := c.byLine[place{at.Filename, at.Line}]
	if comment == nil || !slices.Contains(comment.Names, name) {
		return false
	}
	comment.used = append(comment.used, name)
	return comment.Reason != ""
}

// All returns the comments in the order of the source.
func (c *Comments) All() []*Comment { return c.all }

// Unused returns the names that silenced nothing. It is asked when all findings are there.
func (c *Comment) Unused() (names []string) {
	for _, name := range c.Names {
		if !slices.Contains(c.used, name) {
			names = append(names, name)
		}
	}
	return names
}
