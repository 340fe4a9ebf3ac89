package gormlockvet_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var built struct {
	sync.Once
	dir string
	out []byte
	err error
}

func TestMain(m *testing.M) {
	// With -trimpath what is compiled in a directory for a test alone is cached for the next one. The tag adds programs at
	// which go vet itself would stop.
	if err := os.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -trimpath -tags=unvetted"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(built.dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// vettool returns the program, which is built once.
func vettool(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "gormlockvet"); built.err == nil {
			built.out, built.err = exec.Command("go", "build", "-buildvcs=false", "-o", built.dir, "./cmd/gormlockvet").CombinedOutput()
		}
	})
	if built.err != nil {
		t.Fatalf("%v: %s", built.err, built.out)
	}
	return filepath.Join(built.dir, "gormlockvet")
}

// goVet runs go vet. It keeps what a tool said, and with -trimpath repeats it for the same program in another directory, which it
// names as it was: see ofTestdata.
func goVet(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	vet := exec.CommandContext(t.Context(), "go", append([]string{"vet", "-vettool=" + vettool(t)}, args...)...)
	vet.Dir = dir
	out, err := vet.CombinedOutput()
	return string(out), err
}

var told = regexp.MustCompile(`(?m)^(?:\./|vet: )?(\S+\.go):(\d+):\d+: (\w+): `)

// ofTestdata is the name of a file of testdata, of whichever clone.
func ofTestdata(file string) string {
	if _, within, is := strings.Cut(file, "/gormlockvet/testdata/"); is {
		return within
	}
	return file
}

// go vet, which runs the program once for each package and carries what is known between them, finds the same.
func TestGoVet(t *testing.T) {
	t.Parallel()
	out, err := goVet(t, testdata(t), "./planted/...", "./innocent/...")
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("go vet: %v: %s", err, out)
	}
	_, same := look(t, testdata(t), "./planted/...", "./innocent/...")
	found := map[finds]bool{}
	for _, line := range told.FindAllStringSubmatch(out, -1) {
		at, err := strconv.Atoi(line[2])
		if err != nil {
			t.Fatal(err)
		}
		f := finds{ofTestdata(line[1]), at, line[3]}
		if found[f] = true; same[f] == "" {
			t.Errorf("found by go vet alone: %s", line[0])
		}
	}
	for _, f := range sorted(same) {
		if !found[f] {
			t.Errorf("not found by go vet: %s", f)
		}
	}
}

// Flags leave findings out, and take tests in.
func TestFlags(t *testing.T) {
	t.Parallel()
	run := func(args ...string) string {
		out, _ := goVet(t, testdata(t), args...) // it fails where it finds something
		return out
	}
	if out := run("./flags"); !strings.Contains(out, "flags.go:") || strings.Contains(out, "flags_test.go:") {
		t.Errorf("without flags: %s", out)
	}
	if out := run("-testfiles", "./flags"); !strings.Contains(out, "flags_test.go:") {
		t.Errorf("with -testfiles: %s", out)
	}
	if out := run("-gormlockignored=false", "./flags"); strings.Contains(out, "ignored") || !strings.Contains(out, "dropped") {
		t.Errorf("without ignored: %s", out)
	}
}
