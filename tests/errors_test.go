package tests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"gorm.io/gorm"
)

// errorTrees hold the errors that a user meets: the module at the root, without what only its development needs.
var errorTrees = map[string]bool{"bench": false, "examples": false, "gormlockvet": false, "scripts": false, "tests": false, "internal/chromium": false,
	"internal/modules": false, "internal/pgserver": false, "internal/pgtest": false, "internal/wiretap": false}

// parts are files whose texts begin without a prefix, with who puts it before them.
var parts = map[string]string{
	"internal/claim/columns.go":            "claim.refused",
	"internal/claim/free.go":               "claim.refused and PrepareClaim",
	"internal/claim/locked.go":             "claim.refused",
	"internal/claim/rows.go":               "claim.refused",
	"internal/claim/sql.go":                "claim.refused",
	"internal/column/fence.go":             "model.OfSchema",
	"internal/column/tag.go":               "model.OfSchema",
	"internal/asked/mark.go":               "the intent's Refusal",
	"internal/guard/version.go":            "Stale.Text",
	"internal/lookalike/lookalike.go":      "AllowServer",
	"internal/model/misplaced.go":          "model.OfSchema",
	"internal/model/model.go":              "model.OfSchema",
	"internal/model/root.go":               "model.OfSchema",
	"internal/pgtime/pgtime.go":            "work.Enqueue, and what a schedule says",
	"internal/rowlock/fit.go":              "Lock.Fits",
	"internal/rowlock/reach.go":            "Lock.Reach",
	"internal/rowlock/unlockable.go":       "Lock.Reach",
	"internal/tokens/error.go":             "the lock that the token is of",
	"inspect/internal/ending/ending.go":    "the page, which shows it",
	"inspect/jobs.go":                      "View.Unseen",
	"inspect/snapshot.go":                  "Snapshot",
	"lease/errors.go":                      "holder.Error, and Manager.Holder",
	"lease/every.go":                       "the schedule's row and its observer",
	"lease/holdings.go":                    "holder.Error",
	"sessionlock/acquire.go":               "holder.Error",
	"sessionlock/answer.go":                "holder.Error",
	"sessionlock/batch.go":                 "holder.Error",
	"sessionlock/loss.go":                  "holder.Error",
	"sessionlock/internal/dial/refusal.go": "probe",
	"sessionlock/internal/wire/answer.go":  "holder.Error",
	"internal/sound/sound.go":              "who tells of the caller's error",
	"work/engine.go":                       "the job's row",
	"work/ask.go":                          "the job's row",
	"work/worker.go":                       "the job's row",
	"work/rows.go":                         "the line that logs it",
	"work/job.go":                          "the job's row",
}

// isPart reports whether the texts of a file have their prefix from elsewhere. The command prints it before all of its own.
func isPart(file string) bool { return parts[file] != "" || strings.HasPrefix(file, "cmd/gormlock/") }

// errorText is a text that an error is made of.
type errorText struct {
	file, text string
	line       int
	args       []ast.Expr // what its verbs stand for
}

// errorSource is what the source says about errors.
type errorSource struct {
	texts []errorText
	ours  map[string]bool // variables that hold an error with our prefix
	names map[string]bool // what a text may begin with in capitals: names that users call
}

func readErrors(t *testing.T) *errorSource {
	t.Helper()
	source := &errorSource{ours: map[string]bool{}, names: map[string]bool{}}
	for typ := reflect.TypeFor[*gorm.DB](); len(source.names) < typ.NumMethod(); {
		source.names[typ.Method(len(source.names)).Name] = true
	}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, "../"))
		_, left := errorTrees[name]
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != ".." && (left || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case entry.IsDir(), filepath.Ext(path) != ".go", strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err == nil {
			source.read(files, name, file)
		}
		return err
	})
	if err != nil || len(source.texts) < 300 {
		t.Fatalf("%d texts read: %v", len(source.texts), err)
	}
	return source
}

func (s *errorSource) read(files *token.FileSet, name string, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if text, ok := textOf(n); ok {
				s.texts = append(s.texts, errorText{name, text, files.Position(n.Pos()).Line, n.Args[1:]})
			}
		case *ast.FuncDecl:
			s.names[n.Name.Name] = n.Name.IsExported()
		case *ast.ValueSpec:
			for i, value := range n.Values {
				call, isCall := value.(*ast.CallExpr)
				if !isCall {
					continue
				}
				if text, ok := textOf(call); ok && strings.HasPrefix(text, "gormlock: ") {
					s.ours[n.Names[i].Name] = true
				}
			}
		}
		return true
	})
}

// textOf is the text that a call makes an error of, with … for what is no constant.
func textOf(call *ast.CallExpr) (string, bool) {
	called, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return "", false
	}
	if of, ok := called.X.(*ast.Ident); !ok || of.Name+"."+called.Sel.Name != "errors.New" && of.Name+"."+called.Sel.Name != "fmt.Errorf" {
		return "", false
	}
	return constantOf(call.Args[0]), true
}

func constantOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.BinaryExpr:
		return constantOf(e.X) + constantOf(e.Y)
	}
	return "…"
}

var (
	verb      = regexp.MustCompile(`%[-+# 0-9.]*(\[\d+\])?[a-zA-Z]`)
	firstWord = regexp.MustCompile(`^[A-Za-z-]+`)
)

// complaints says what is wrong with a text.
func (s *errorSource) complaints(e errorText) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	prefix, rest, _ := strings.Cut(e.text, ": ")
	switch {
	case strings.TrimSpace(e.text) == "":
		say("it is empty")
	case e.text == "…": // a text of another function, or of a server
	case prefix == "gormlock" || prefix == "gormlocktest":
	case strings.HasPrefix(e.text, "%w"):
		rest = e.text
	case isPart(e.file):
		rest = e.text
	default:
		say("it does not begin with gormlock:, and its file is none of those whose texts get that elsewhere")
	}
	if word := firstWord.FindString(rest); word != "" && unicode.IsUpper(rune(word[0])) && !s.names[word] && word != strings.ToUpper(word) && word != "If-Match" {
		say("it begins with a capital, and %s is no name that users call", word)
	}
	if strings.HasSuffix(e.text, ".") || strings.HasSuffix(e.text, "!") || strings.HasSuffix(e.text, " ") {
		say("its end is no word")
	}
	for i, v := range verb.FindAllStringIndex(strings.ReplaceAll(e.text, "%%", "  "), -1) {
		if e.text[v[1]-1] == 'w' && v[0] > 0 && i < len(e.args) && s.isOurs(e.args[i]) {
			say("it says gormlock: in its middle: wrap what it is because of with Because")
		}
	}
	for _, phrase := range unplain {
		if strings.Contains(e.text, phrase) {
			say("it says %q", phrase)
		}
	}
	return all
}

// isOurs reports whether an expression is one of our errors by its name.
func (s *errorSource) isOurs(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return s.ours[e.Name]
	case *ast.SelectorExpr:
		of, ok := e.X.(*ast.Ident)
		return ok && of.Name != "gorm" && s.ours[e.Sel.Name]
	}
	return false
}

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	source := readErrors(t)
	used := map[string]bool{}
	for _, e := range source.texts {
		used[e.file] = true
		for _, complaint := range source.complaints(e) {
			t.Errorf("%s:%d: %q: %s", e.file, e.line, e.text, complaint)
		}
	}
	for file, by := range parts {
		if !used[file] {
			t.Errorf("%s makes no error, and is said to have its prefix from %s", file, by)
		}
	}
}

func TestErrorTexts_badOnesAreSeen(t *testing.T) {
	t.Parallel()
	source := &errorSource{ours: map[string]bool{"ErrStale": true}, names: map[string]bool{"Touch": true}}
	stale := []ast.Expr{&ast.Ident{Name: "key"}, &ast.SelectorExpr{X: &ast.Ident{Name: "fault"}, Sel: &ast.Ident{Name: "ErrStale"}}}
	for text, complaints := range map[string]int{
		"gormlock: lock %s: held": 0, "gormlock: Touch: no row": 0, "%w: lock": 0, "gormlock: JSON": 0, "…": 0,
		"": 1, "lock %s": 1, "gormlock: Lock": 1, "gormlock: held.": 1, "gormlock: lock %s: %w": 1, "gormlock: tells whether": 1,
	} {
		if got := source.complaints(errorText{file: "x.go", text: text, args: stale}); len(got) != complaints {
			t.Errorf("%q: %q, want %d", text, got, complaints)
		}
	}
}
