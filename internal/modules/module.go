package modules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Module is a module of the repository, as its go.mod says.
type Module struct {
	Dir      string // from the root, with slashes; "." is the root
	Path     string
	Go       string
	Requires []Requirement
	Replaces []Replacement
}

// Requirement is a line of a go.mod.
type Requirement struct {
	Path     string
	Version  string
	Indirect bool
}

// Replacement is a line of a go.mod that puts a directory in the place of a module.
type Replacement struct {
	Path string
	Dir  string // from that of the go.mod
}

// Find returns the modules at and below root, that of root itself first.
func Find(ctx context.Context, root string) ([]Module, error) {
	var found []Module
	err := filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && at != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || entry.Name() != "go.mod":
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(at))
		if err != nil {
			return err
		}
		m, err := read(ctx, root, filepath.ToSlash(dir))
		found = append(found, m)
		return err
	})
	slices.SortFunc(found, func(a, b Module) int { return strings.Compare(a.Dir, b.Dir) }) // "." is before all letters
	if err == nil && (len(found) == 0 || found[0].Dir != ".") {
		err = fmt.Errorf("%s is not the root of a module", root)
	}
	return found, err
}

func read(ctx context.Context, root, dir string) (Module, error) {
	var file struct {
		Module  struct{ Path string }
		Go      string
		Require []Requirement
		Replace []struct{ Old, New struct{ Path string } }
	}
	out, err := run(ctx, root, dir, "mod", "edit", "-json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &file)
	}
	if err != nil {
		return Module{}, err
	}
	m := Module{Dir: dir, Path: file.Module.Path, Go: file.Go, Requires: file.Require}
	for _, r := range file.Replace {
		m.Replaces = append(m.Replaces, Replacement{r.Old.Path, r.New.Path})
	}
	return m, nil
}

// run runs the go command in a module, apart from every workspace.
func run(ctx context.Context, root, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = filepath.Join(root, filepath.FromSlash(dir))
	command.Env = append(os.Environ(), "GOWORK=off")
	out, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("%s: go %s: %w", dir, strings.Join(args, " "), err)
	}
	return string(out), nil
}

// Readable reports whether m is written for no later Go than this one, which would refuse it.
func (m Module) Readable() bool { return version.Compare("go"+m.Go, runtime.Version()) <= 0 }

// byPath returns the module of that path.
func byPath(all []Module, path string) (Module, bool) {
	i := slices.IndexFunc(all, func(m Module) bool { return m.Path == path })
	if i < 0 {
		return Module{}, false
	}
	return all[i], true
}

// replaces are the lines that m has to have: one for each module of the repository that it requires.
func (m Module) replaces(all []Module) []Replacement {
	var want []Replacement
	for _, r := range m.Requires {
		if other, ours := byPath(all, r.Path); ours {
			want = append(want, Replacement{r.Path, m.to(other)})
		}
	}
	return want
}

// to is the way from the directory of m to that of another module.
func (m Module) to(other Module) string {
	way, err := filepath.Rel(filepath.FromSlash(m.Dir), filepath.FromSlash(other.Dir))
	if err != nil {
		panic(err) // both are below one root
	}
	if way = path.Clean(filepath.ToSlash(way)); strings.HasPrefix(way, "..") {
		return way
	}
	return "./" + way
}
