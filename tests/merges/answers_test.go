package merges_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/etag"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
	"github.com/gormlock/gormlock/work"
)

// answer is what etag.WriteError makes of an error: a status, or 0 and why it is none of its errors.
type answer struct {
	err    error
	status int
	why    string
}

const (
	mistake = "the program has made a mistake, or the server is set up wrongly: no client can do anything about it"
	inward  = "it is between the program and its locks: which request suffers is the program's to say"
)

var answers = map[string]answer{
	".ErrNotInstalled":   {gormlock.ErrNotInstalled, 0, mistake},
	".ErrNotPostgres":    {gormlock.ErrNotPostgres, 0, mistake},
	".ErrNoTransaction":  {gormlock.ErrNoTransaction, 0, mistake},
	".ErrSubQuery":       {gormlock.ErrSubQuery, 0, mistake},
	".ErrOption":         {gormlock.ErrOption, 0, mistake},
	".ErrSnapshotTaken":  {gormlock.ErrSnapshotTaken, 0, mistake},
	".ErrNotAcquired":    {gormlock.ErrNotAcquired, 409, ""},
	".ErrLockTimeout":    {gormlock.ErrLockTimeout, 503, ""},
	".ErrStandby":        {gormlock.ErrStandby, 0, mistake},
	".ErrServer":         {gormlock.ErrServer, 0, mistake},
	".ErrFenced":         {gormlock.ErrFenced, 409, ""},
	".FencedError":       {&gormlock.FencedError{}, 409, ""},
	".ErrFenceMissing":   {gormlock.ErrFenceMissing, 0, mistake},
	".ErrOtherRequest":   {gormlock.ErrOtherRequest, 422, ""},
	".ErrStale":          {gormlock.ErrStale, 412, ""},
	".StaleError":        {&gormlock.StaleError{}, 412, ""},
	".ConflictError":     {&gormlock.ConflictError{}, 412, ""},
	".ErrVersionMissing": {gormlock.ErrVersionMissing, 428, ""},

	"advisory.ErrNotAcquired":   {advisory.ErrNotAcquired, 409, ""},
	"advisory.ErrLockTimeout":   {advisory.ErrLockTimeout, 503, ""},
	"advisory.ErrSnapshotTaken": {advisory.ErrSnapshotTaken, 0, mistake},
	"advisory.ErrStandby":       {advisory.ErrStandby, 0, mistake},
	"advisory.ErrServer":        {advisory.ErrServer, 0, mistake},
	"advisory.ErrOption":        {advisory.ErrOption, 0, mistake},
	"advisory.ErrPooler":        {advisory.ErrPooler, 0, mistake},
	"advisory.ErrNotPostgres":   {advisory.ErrNotPostgres, 0, mistake},
	"advisory.ErrHeld":          {advisory.ErrHeld, 0, mistake},
	"advisory.ErrNotHeld":       {advisory.ErrNotHeld, 0, mistake},

	"etag.ErrMalformed": {etag.ErrMalformed, 400, ""},
	"etag.ErrRequired":  {etag.ErrRequired, 428, ""},
	"etag.ErrNoVersion": {etag.ErrNoVersion, 0, mistake},

	"lease.ErrNotAcquired": {lease.ErrNotAcquired, 409, ""},
	"lease.ErrLockTimeout": {lease.ErrLockTimeout, 503, ""},
	"lease.ErrLost":        {lease.ErrLost, 503, ""},
	"lease.ErrReleased":    {lease.ErrReleased, 0, inward},
	"lease.ErrClosed":      {lease.ErrClosed, 0, inward},
	"lease.ErrReentrant":   {lease.ErrReentrant, 0, mistake},
	"lease.ErrStandby":     {lease.ErrStandby, 0, mistake},
	"lease.ErrReadOnly":    {lease.ErrReadOnly, 0, mistake},
	"lease.ErrTable":       {lease.ErrTable, 0, mistake},
	"lease.ErrOption":      {lease.ErrOption, 0, mistake},

	"lockkey.ErrInvalid": {lockkey.ErrInvalid, 0, mistake},

	"sessionlock.ErrNotAcquired":  {sessionlock.ErrNotAcquired, 409, ""},
	"sessionlock.ErrLockTimeout":  {sessionlock.ErrLockTimeout, 503, ""},
	"sessionlock.ErrLost":         {sessionlock.ErrLost, 503, ""},
	"sessionlock.ErrReleased":     {sessionlock.ErrReleased, 0, inward},
	"sessionlock.ErrClosed":       {sessionlock.ErrClosed, 0, inward},
	"sessionlock.ErrTooManyLocks": {sessionlock.ErrTooManyLocks, 0, inward},
	"sessionlock.ErrReentrant":    {sessionlock.ErrReentrant, 0, mistake},
	"sessionlock.ErrPooler":       {sessionlock.ErrPooler, 0, mistake},
	"sessionlock.ErrStandby":      {sessionlock.ErrStandby, 0, mistake},
	"sessionlock.ErrServer":       {sessionlock.ErrServer, 0, mistake},
	"sessionlock.ErrNoExclusion":  {sessionlock.ErrNoExclusion, 0, mistake},
	"sessionlock.ErrOption":       {sessionlock.ErrOption, 0, mistake},

	"work.ErrTakenOver": {work.ErrTakenOver, 0, inward},

	"gormlocktest.ErrRefused":          {gormlocktest.ErrRefused, 0, "it is an answer of a mock"},
	"gormlocktest.ErrLockNotAvailable": {gormlocktest.ErrLockNotAvailable, 0, "it is an answer of a mock"},
	"gormlocktest.ErrNotATest":         {gormlocktest.ErrNotATest, 0, mistake},
}

// Each error that users can get has an answer in HTTP, or deliberately none: here stands which. The sources are read, so
// that a new one cannot be forgotten.
func TestWriteError_ofEachError(t *testing.T) {
	t.Parallel()
	named := exportedErrors(t, "../..")
	if len(named) < 50 {
		t.Fatalf("only %d errors were found", len(named))
	}
	for name := range named {
		if _, ok := answers[name]; !ok {
			t.Errorf("%s: say here what etag.WriteError answers, or why it does not", name)
		}
	}
	for name, c := range answers {
		if !named[name] {
			t.Errorf("there is no %s", name)
		}
		for how, err := range map[string]error{"as it is": c.err, "wrapped": fmt.Errorf("save: %w", c.err), "joined": errors.Join(errors.New("x"), c.err)} {
			w := httptest.NewRecorder()
			ours := etag.WriteError(w, err)
			if ours != (c.status > 0) || ours && w.Code != c.status || !ours && (w.Body.Len() > 0 || len(w.Header()) > 0) {
				t.Errorf("%s, %s: %t, %d, want %d", name, how, ours, w.Code, c.status)
			}
			if (w.Code == 503) != (w.Header().Get("Retry-After") != "") {
				t.Errorf("%s: %d with Retry-After %q", name, w.Code, w.Header().Get("Retry-After"))
			}
		}
		if (c.why == "") != (c.status > 0) {
			t.Errorf("%s: a status, or why there is none", name)
		}
	}
}

// exportedErrors are the errors of the packages that users can import, by directory and name: variables called Err…, and
// types called …Error.
func exportedErrors(t *testing.T, root string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := entry.Name(); {
		case entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "internal" || name == "testdata" || name == "node_modules"):
			return fs.SkipDir
		case entry.IsDir() && filepath.Dir(path) == root && (name == "tests" || name == "examples" || name == "bench" || name == "cmd" || name == "scripts"):
			return fs.SkipDir
		case entry.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil || file.Name.Name == "main" {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if dir != "." {
			dir = filepath.ToSlash(dir) + "."
		}
		for _, declared := range file.Decls {
			list, ok := declared.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range list.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						if name.IsExported() && strings.HasPrefix(name.Name, "Err") {
							found[dir+name.Name] = true
						}
					}
				case *ast.TypeSpec:
					if spec.Name.IsExported() && strings.HasSuffix(spec.Name.Name, "Error") {
						found[dir+spec.Name.Name] = true
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
