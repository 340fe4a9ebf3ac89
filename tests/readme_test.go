package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The program of the README runs as it stands, by the commands of the README, in a module that was empty before.
func TestReadme_theProgramRuns(t *testing.T) {
	t.Parallel()
	program := find(t, "(?s)```go\n(package main\n.*?)```", readme(t))
	promised := find(t, "(?s)It prints:\n\n```text\n(.*?)```", readme(t))
	m := newProgram(t, program)
	for _, install := range regexp.MustCompile(`(?m)^go get .*`).FindAllString(readme(t), -1) {
		m.run(t, atOurVersions(t, strings.Fields(install))...)
	}
	m.env = append(m.env, "DATABASE_URL="+pgtest.SchemaDSN(t))
	start := find(t, `(?m)^DATABASE_URL=postgres://\S+ (go run .*?)(?: #.*)?$`, readme(t))
	if out := m.run(t, strings.Fields(start)...); out != promised {
		t.Errorf("it prints\n%s\nit promises\n%s", out, promised)
	}
}

func find(t *testing.T, pattern, text string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("the README has no %s", pattern)
	}
	return match[1]
}

// scratchModule is a directory in which a stranger runs commands.
type scratchModule struct {
	dir string
	env []string
}

// emptyModule returns one where the go command takes modules from its cache. What is not there it may fetch.
func emptyModule(t *testing.T) *scratchModule {
	t.Helper()
	m := &scratchModule{dir: t.TempDir()}
	proxies := strings.Fields(m.run(t, "go", "env", "GOMODCACHE", "GOPROXY"))
	m.env = []string{"GOPROXY=file://" + filepath.ToSlash(proxies[0]) + "/cache/download," + proxies[1], "GOSUMDB=off", "GOFLAGS=-trimpath", "GOWORK=off"}
	return m
}

// newProgram is a module with one file, which gets gormlock from this tree.
func newProgram(t *testing.T, text string) *scratchModule {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	m := emptyModule(t)
	m.run(t, "go", "mod", "init", "scratch")
	m.run(t, "go", "mod", "edit", "-replace", ours+"="+root)
	if err := os.WriteFile(filepath.Join(m.dir, "main.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *scratchModule) run(t *testing.T, command ...string) string {
	t.Helper()
	run := exec.CommandContext(t.Context(), command[0], command[1:]...)
	run.Dir, run.Env = m.dir, append(os.Environ(), m.env...)
	var said strings.Builder
	run.Stderr = &said
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, out, said.String())
	}
	return string(out)
}

// atOurVersions asks for modules at the versions that this module has, which are in the cache.
func atOurVersions(t *testing.T, command []string) []string {
	t.Helper()
	module := file(t, "../go.mod")
	for i, arg := range command {
		if version := regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(arg) + ` (v\S+)`).FindStringSubmatch(module); version != nil {
			command[i] += "@" + version[1]
		}
	}
	return command
}

func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
