package modules

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Workspace is the file, from the root, that names the modules which are built and tested together.
const Workspace = "scripts/go.work"

// Apart are the modules that are not in the workspace: they require much that the others do not, or a later Go, and would
// raise what all are tested with.
var Apart = []string{"bench", "gormlockvet", "internal/pgserver/fetch", "tests/adapters", "tests/compat"}

// Check says what is out of step, one thing a line.
func Check(ctx context.Context, root string) (problems []string, err error) {
	all, err := Find(ctx, root)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		for _, problem := range slices.Concat(m.checkHead(ctx, root, all[0]), m.checkReplaces(all), m.checkRequires(all)) {
			problems = append(problems, path.Join(m.Dir, "go.mod")+": "+problem)
		}
	}
	inWorkspace, err := checkWorkspace(root, all)
	return append(problems, inWorkspace...), err
}

// checkHead looks at the name and the Go of a module.
func (m Module) checkHead(ctx context.Context, root string, measure Module) (problems []string) {
	if want := path.Join(measure.Path, m.Dir); m.Path != want {
		problems = append(problems, fmt.Sprintf("the module is called %s, its directory says %s", m.Path, want))
	}
	if m.Go == measure.Go || m.apart() && !m.Readable() {
		return problems
	}
	problem := fmt.Sprintf("go %s, the root has go %s", m.Go, measure.Go)
	if !m.apart() {
		return append(problems, problem+": what is in the workspace has no other")
	}
	switch asked, err := run(ctx, root, m.Dir, "list", "-m", "-f", "{{if not .Main}}{{.GoVersion}}{{end}}", "all"); {
	case err != nil:
		problems = append(problems, fmt.Sprintf("%s: %v", problem, err))
	case !slices.Contains(strings.Fields(asked), m.Go):
		problems = append(problems, problem+", and nothing that is required asks for more")
	}
	return problems
}

// checkReplaces looks that a module replaces those of the repository that it requires, and nothing else.
func (m Module) checkReplaces(all []Module) (problems []string) {
	if m.Dir == "." && len(m.Replaces) > 0 {
		return []string{"the root replaces modules: who requires it does not"}
	}
	wanted := m.replaces(all)
	for _, want := range wanted {
		if !slices.Contains(m.Replaces, want) {
			problems = append(problems, fmt.Sprintf("no line: replace %s => %s", want.Path, want.Dir))
		}
	}
	for _, has := range m.Replaces {
		if !slices.Contains(wanted, has) {
			problems = append(problems, fmt.Sprintf("replace %s => %s replaces nothing that is required from where it lies", has.Path, has.Dir))
		}
	}
	return problems
}

// checkRequires looks that what several modules name themselves has one version.
func (m Module) checkRequires(all []Module) (problems []string) {
	for _, r := range m.Requires {
		if want := m.wanted(all, r); r.Version != want {
			problems = append(problems, fmt.Sprintf("requires %s %s, it is %s elsewhere", r.Path, r.Version, want))
		}
	}
	return problems
}

// wanted is the version that m should require where it requires r.
func (m Module) wanted(all []Module, r Requirement) string {
	if _, sibling := byPath(all, r.Path); sibling {
		return versionOfSiblings(all)
	}
	want := shared(all, r.Path)
	if r.Indirect || want == "" || m.apart() && newer(r.Version, want) {
		return r.Version
	}
	return want
}

// versionOfSiblings is the one that the modules of the repository require of each other: the latest of those that are there.
func versionOfSiblings(all []Module) (latest string) {
	for _, m := range all {
		for _, r := range m.Requires {
			if _, sibling := byPath(all, r.Path); sibling && newer(r.Version, latest) {
				latest = r.Version
			}
		}
	}
	return latest
}

// shared is the version that modules which name a path themselves require of it: the root's where it names it, else the
// latest in the workspace. Empty: nobody there names it.
func shared(all []Module, path string) (latest string) {
	for i, m := range all {
		for _, r := range m.Requires {
			switch {
			case r.Path != path || r.Indirect || m.apart():
			case i == 0:
				return r.Version
			case newer(r.Version, latest):
				latest = r.Version
			}
		}
	}
	return latest
}

func (m Module) apart() bool { return slices.Contains(Apart, m.Dir) }

var digits = regexp.MustCompile(`\d+|\D+`)

// newer compares two versions: number by number, and what is no number as text. Every version is newer than none.
func newer(a, b string) bool {
	if b == "" {
		return a != ""
	}
	x, y := digits.FindAllString(a, -1), digits.FindAllString(b, -1)
	for i := range min(len(x), len(y)) {
		switch {
		case x[i] == y[i]:
		case len(x[i]) != len(y[i]) && x[i][0] >= '0' && x[i][0] <= '9':
			return len(x[i]) > len(y[i])
		default:
			return x[i] > y[i]
		}
	}
	return len(x) < len(y) // 1.2.0 is newer than 1.2.0-rc1
}

var used = regexp.MustCompile(`(?m)^\s*(\.\./\S*|\.\.)$`)

// checkWorkspace looks that the workspace names each module that is not apart.
func checkWorkspace(root string, all []Module) (problems []string, err error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(Workspace)))
	if err != nil {
		return nil, err
	}
	if want := "go " + all[0].Go; !strings.HasPrefix(string(text), want+"\n") {
		problems = append(problems, Workspace+": does not begin with "+want)
	}
	var uses []string
	for _, match := range used.FindAllStringSubmatch(string(text), -1) {
		uses = append(uses, path.Join(path.Dir(Workspace), match[1]))
	}
	for _, m := range all {
		switch uses := slices.Contains(uses, m.Dir); {
		case uses && m.apart():
			problems = append(problems, Workspace+": uses "+m.Dir+", which is apart")
		case !uses && !m.apart():
			problems = append(problems, Workspace+": does not use "+m.Dir)
		}
	}
	return problems, nil
}
