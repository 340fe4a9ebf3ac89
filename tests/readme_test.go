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
	var promised strings.Builder // what stands behind each call that prints, in their order
	for _, line := range regexp.MustCompile(`(?m)\) +// (.+)$`).FindAllStringSubmatch(program[1], -1) {
		promised.WriteString(line[1] + "\n")
	}
	if strings.Count(promised.String(), "\n") < 3 {
		t.Fatalf("the program says only that it prints %q", promised.String())
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
	if err != nil || string(out) != promised.String() {
		t.Errorf("it prints\n%s%v\nit promises\n%s", out, err, promised.String())
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
