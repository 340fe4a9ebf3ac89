// Package docs reads README.md, CHANGELOG.md, CONTRIBUTING.md and docs/ as a compiler, a server and a browser would: Go in
// them compiles and runs, SQL runs, links lead somewhere, and the tests they name exist.
//
// A ```go block is a whole file, declarations, or the statements of a function; inline code is compiled and run where it is a
// call into gormlock or on db, tx, locks or leases. What it uses without declaring it stands in testdata/all.go and, for
// docs/x.md, in testdata/x.go or in one that it shares, whose setup makes the tables and rows before each snippet. An ellipsis
// stands for a function's body. No error may be left where a snippet ends, and each statement of GORM's has to find or change a
// row.
package docs

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// document is a file of Markdown.
type document struct {
	path string // from the root of the repository
	text string
}

func documents(t *testing.T) []document {
	t.Helper()
	paths, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no docs: %v", err)
	}
	deeper, err := filepath.Glob(root + "/docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []document
	for _, path := range append(append(paths, deeper...), root+"/README.md", root+"/CHANGELOG.md", root+"/CONTRIBUTING.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		path, err = filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, document{path, string(text)})
	}
	return all
}

// preludes are the files of testdata that declare what the document's snippets use, where there are such: the nearest first.
func (d document) preludes() []string {
	name := strings.TrimSuffix(filepath.Base(d.path), ".md")
	return []string{name, shared[name], "all"}
}

// shared are the preludes of other documents that a document uses too.
var shared = map[string]string{"adapters": "leaders", "hibernate-locks": "hibernate", "rails-locks": "rails", "testing-mocks": "testing"}

// snippet is Go in a document.
type snippet struct {
	line   int // of its first line in the document
	code   string
	inline bool
}

// isProgram holds for a whole file, with a package clause.
func (s snippet) isProgram() bool { return strings.HasPrefix(s.code, "package ") }

var (
	inlineCode = regexp.MustCompile("`([^`\n]+)`")
	// call matches inline code that is to compile: a call into a package of ours, or on db or tx.
	call = regexp.MustCompile(`^(?:[\w, ]+ :?= )?(?:gorm\.G\[\w+\]|(?:db|tx|locks|leases|gormlock|gormlocktest|advisory|lockkey|compat|fence|sessionlock|lease|observe|otelobserve|inspect)\.[^ ]*)\(.*\)[\w.\[\]()]*$`)
)

// snippets finds the Go of a document, in blocks and inline.
func (d document) snippets() (found []snippet) {
	var block *snippet
	fenced := false
	for i, line := range strings.Split(d.text, "\n") {
		switch fence := strings.TrimSpace(line); {
		case strings.HasPrefix(fence, "```") && fenced:
			if block != nil {
				found = append(found, *block)
			}
			block, fenced = nil, false
		case strings.HasPrefix(fence, "```"):
			fenced = true
			if fence == "```go" {
				block = &snippet{line: i + 2}
			}
		case block != nil:
			block.code += line + "\n"
		case !fenced:
			for _, code := range inlineCode.FindAllStringSubmatch(line, -1) {
				text := strings.ReplaceAll(code[1], `\|`, "|") // in a table
				if call.MatchString(text) && !strings.Contains(text, "(…)") {
					found = append(found, snippet{line: i + 1, code: text + "\n", inline: true})
				}
			}
		}
	}
	return found
}

// sql is what stands in the ```sql blocks of a document.
func (d document) sql() (blocks []string) {
	for _, block := range strings.Split(d.text, "```sql\n")[1:] {
		sql, _, _ := strings.Cut(block, "\n```")
		blocks = append(blocks, sql)
	}
	return blocks
}

// prose is the document without its code.
func (d document) prose() string {
	var out bytes.Buffer
	fenced := false
	for _, line := range strings.Split(d.text, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
			out.WriteByte('\n')
		case fenced:
			out.WriteByte('\n')
		default:
			out.WriteString(inlineCode.ReplaceAllString(line, "") + "\n")
		}
	}
	return out.String()
}

func TestDocs_goCompiles(t *testing.T) {
	t.Parallel()
	c := newCompiler(t)
	for _, d := range documents(t) {
		t.Run(d.path, func(t *testing.T) {
			inline, blocks := 0, 0
			for _, s := range d.snippets() {
				if s.inline {
					inline++
				} else {
					blocks++
				}
				for _, err := range c.check(d, s).errs {
					t.Error(err)
				}
			}
			t.Logf("%d blocks and %d calls in the text compile", blocks, inline)
		})
	}
}

// What does not compile is seen, at its line.
func TestDocs_goCompiles_seesWhatDoesNot(t *testing.T) {
	t.Parallel()
	c := newCompiler(t)
	for code, want := range map[string]string{
		"```go\ngormlock.NoSuchThing()\n```":                                   "README.md:2:10: undefined: gormlock.NoSuchThing",
		"text\n\n```go\nx := 1\ny := nothing\n```":                             "README.md:5:6: undefined: nothing",
		"| `gormlock.Locking(1)` |":                                            "README.md:1:21: cannot use 1",
		"```go\ntype T struct{}\n\nfunc (T) m() int { return \"\" }\n```":      "README.md:4:27: cannot use \"\"",
		"```go\npackage main\n\nfunc main() { undefined() }\n```":              "README.md:4:15: undefined: undefined",
		"```go\nerr := gormlock.Transaction(db, func(tx *gorm.DB) { … })\n```": "README.md:2:33: cannot use (func",
		"```go\nfor {\n```":                                                    "expected",
	} {
		d := document{path: "README.md", text: code}
		found := d.snippets()
		if len(found) != 1 {
			t.Errorf("%d snippets in %s", len(found), code)
			continue
		}
		var said []string
		for _, err := range c.check(d, found[0]).errs {
			said = append(said, err.Error())
		}
		if !strings.Contains(strings.Join(said, "\n"), want) {
			t.Errorf("%s: it says %q, want %q", code, said, want)
		}
	}
}
