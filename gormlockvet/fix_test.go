package gormlockvet_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/go/analysis"
)

// Run by hand, and by go vet, -fix leaves a program that compiles and in which nothing is found.
func TestFix_program(t *testing.T) {
	t.Parallel()
	alone := func(t *testing.T, dir string, args ...string) (string, error) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), vettool(t), args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for name, tool := range map[string]func(t *testing.T, dir string, args ...string) (string, error){
		"alone":  alone,
		"go vet": goVet,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := scratchModule(t, sources{"store.go": fixed + "\n// Fixed at " + time.Now().String() + "\n"}) // so that go vet has not seen it
			run := func(args ...string) (string, error) {
				return tool(t, dir, append(args, "./...")...)
			}
			found, err := run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				t.Fatalf("%v: %s", err, found)
			}
			for _, finding := range []string{"dropped", "outer", "silenced", "tags"} {
				if !strings.Contains(found, ": "+finding+": ") {
					t.Errorf("%s is not found: %s", finding, found)
				}
			}
			if out, err := run("-fix"); err != nil {
				t.Fatalf("-fix: %v: %s", err, out)
			}
			if out, err := run(); err != nil || out != "" { // which fails where something does not compile
				t.Errorf("after -fix: %v: %s\n%s", err, out, readFile(t, filepath.Join(dir, "store.go")))
			}
		})
	}
}

// fixed has one of each finding that -fix cures.
const fixed = `package store

import (
	"context"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"gorm.io/gorm"
)

type Account struct {
	ID      int64
	Balance int64
	Version int64 ` + "`" + `json:"version" gormLock:"version"` + "`" + `
}

type Store struct {
	db     *gorm.DB
	leases *lease.Manager
}

func (s *Store) Pay(ctx context.Context, id int64) error {
	return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		account, err := gorm.G[Account](tx.Scopes(gormlock.WithXactLock(gormlock.Key("account", id)))).Where("id = ?", id).First(ctx)
		if err != nil {
			return err
		}
		return s.db.Model(&account).Update("balance", account.Balance-10).Error
	})
}

func (s *Store) PayAll(ctx context.Context, ids []int64) error {
	return s.leases.Do(ctx, gormlock.Key("pay"), time.Minute, func(held context.Context) error {
		for _, id := range ids {
			if err := s.Pay(ctx, id); err != nil { //gormlockvet:ignore held nobody waits for it
				return err
			}
		}
		return nil
	})
}
`

// sources are files by their paths.
type sources map[string]string

// scratchModule makes a module that requires what testdata does.
func scratchModule(t *testing.T, files sources) string {
	t.Helper()
	dir, here := t.TempDir(), testdata(t)
	write := func(path, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o700), os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	module := strings.ReplaceAll(readFile(t, filepath.Join(here, "go.mod")), "=> ../..", "=> "+filepath.Join(here, "../.."))
	write("go.mod", strings.ReplaceAll(module, "=> ./", "=> "+here+"/"))
	write("go.sum", readFile(t, filepath.Join(here, "go.sum")))
	for path, text := range files {
		write(path, text)
	}
	return dir
}

// The programs still compile when all suggested changes are made, and nothing is left to change.
func TestFixesCompile(t *testing.T) {
	t.Parallel()
	programs := []string{"./planted/...", "./dropped/...", "./outer/..."}
	fixes := fixesOf(t, testdata(t), programs...)
	dir := scratchModule(t, nil)
	for _, program := range programs {
		program = strings.TrimSuffix(program, "/...")
		if err := os.CopyFS(filepath.Join(dir, program), os.DirFS(filepath.Join(testdata(t), program))); err != nil {
			t.Fatal(err)
		}
	}
	for path, edits := range fixes {
		text := []byte(readFile(t, filepath.Join(dir, path)))
		slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
		for i, e := range edits {
			if i == 0 || e.to <= edits[i-1].from { // else it is the same change once more
				text = slices.Concat(text[:e.from], e.text, text[e.to:])
			}
		}
		if err := os.WriteFile(filepath.Join(dir, path), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path := range fixesOf(t, dir, "./...") { // which fails where something does not compile
		t.Errorf("%s is to be changed once more:\n%s", path, readFile(t, filepath.Join(dir, path)))
	}
	const atLeast = 8
	if len(fixes) < atLeast {
		t.Errorf("only %d files are changed", len(fixes))
	}
}

type edit struct {
	from, to int
	text     []byte
}

// fixesOf returns the changes that all findings suggest, by files.
func fixesOf(t *testing.T, dir string, patterns ...string) map[string][]edit {
	t.Helper()
	fixes := map[string][]edit{}
	for _, root := range analyze(t, dir, patterns...).Roots {
		for _, e := range editsOf(root.Diagnostics) {
			file := root.Package.Fset.File(e.Pos)
			path, err := filepath.Rel(dir, file.Name())
			if err != nil {
				t.Fatal(err)
			}
			fixes[path] = append(fixes[path], edit{file.Offset(e.Pos), file.Offset(e.End), e.NewText})
		}
	}
	return fixes
}

func editsOf(diagnostics []analysis.Diagnostic) (edits []analysis.TextEdit) {
	for _, d := range diagnostics {
		for _, fix := range d.SuggestedFixes {
			edits = append(edits, fix.TextEdits...)
		}
	}
	return edits
}
