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

// The program of the README runs as it stands, in a module that knows nothing but gormlock.
func TestReadme_theProgramRuns(t *testing.T) {
	t.Parallel()
	program := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindStringSubmatch(readme(t))
	if program == nil {
		t.Fatal("the README has no program")
	}
	promised := regexp.MustCompile(`// (balance: \d+)`).FindStringSubmatch(program[1])
	if promised == nil {
		t.Fatal("the program does not say what it prints")
	}
	dir := t.TempDir()
	module := strings.Replace(file(t, "../go.mod"), "module "+ours, "module scratch", 1)
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	module += "\nrequire " + ours + " v0.0.0\nreplace " + ours + " => " + root + "\n"
	for name, text := range map[string]string{"go.mod": module, "go.sum": file(t, "../go.sum"), "main.go": program[1]} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), "go", "run", "-mod=mod", ".")
	run.Dir = dir
	run.Env = append(os.Environ(), "DATABASE_URL="+pgtest.SchemaDSN(t), "GOWORK=off")
	out, err := run.CombinedOutput()
	if err != nil || string(out) != promised[1]+"\n" {
		t.Errorf("it prints %q, %v; it promises %q", out, err, promised[1])
	}
}

// What the README points to is there: files, headings, and above all the tests that show what it says.
func TestReadme_linksLead(t *testing.T) {
	t.Parallel()
	text := regexp.MustCompile("(?s)```.*?```|`[^`\n]*[(][^`\n]*`").ReplaceAllString(readme(t), "") // code has brackets too
	tests := 0
	for _, link := range regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		name, to := link[1], link[2]
		switch {
		case strings.HasPrefix(to, "#"):
			heading := regexp.MustCompile(`(?mi)^#+ ` + strings.ReplaceAll(to[1:], "-", " ") + `$`)
			if !heading.MatchString(text) {
				t.Errorf("no heading for %s", to)
			}
		case strings.HasPrefix(name, "Test"):
			tests++
			if !strings.Contains(file(t, "../"+to), "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("no %s in %s", name, to)
			}
		default:
			if _, err := os.Stat("../" + to); err != nil {
				t.Error(err)
			}
		}
	}
	if tests == 0 {
		t.Error("the README names no test")
	}
}

func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
