package docs

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/docs/runner"
)

// limit is how long a snippet may run.
const limit = time.Minute

// The Go of the documents runs: blocks, calls in the text, and programs.
func TestDocs_goRuns(t *testing.T) {
	t.Parallel()
	p := &program{c: newCompiler(t), files: map[string]string{}}
	all := documents(t)
	for _, d := range all {
		p.add(t, d, d.snippets())
	}
	p.add(t, broken, broken.snippets())
	p.add(t, endless, endless.snippets())
	bin := p.build(t)
	for _, d := range all {
		t.Run(d.path, func(t *testing.T) {
			blocks, calls := 0, 0
			for _, s := range d.snippets() {
				switch {
				case s.inline:
					calls++
				case !s.isProgram():
					blocks++
				}
			}
			results := runDocument(t, bin, d, limit)
			for _, r := range results {
				if r.Error != "" {
					t.Errorf("%s:%d: %s", r.Document, r.Line, r.Error)
				}
			}
			if len(results) != blocks+calls {
				t.Errorf("%d blocks and calls ran, of %d", len(results), blocks+calls)
			}
			t.Logf("%d blocks and %d calls in the text run", blocks, calls)
		})
	}
	for _, main := range p.mains {
		t.Run(main.name, func(t *testing.T) {
			whole := exec.CommandContext(t.Context(), filepath.Join(bin, main.dir))
			whole.Env = append(os.Environ(), "DATABASE_URL="+pgtest.SchemaDSN(t))
			if out, err := whole.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	t.Run("what does not run is seen", func(t *testing.T) { seesWhatDoesNotRun(t, bin) })
}

// broken is a document of snippets that do not run.
var broken = document{path: "broken.md", text: strings.Join([]string{
	"```go", "x := 1", `err := errors.New("assigned")`, "```",
	"```go", `db.Exec("SELECT 1")`, `db.Exec("SELECT nonsense")`, "```",
	"```go", "if err == nil {", `	err = errors.New("in a block")`, "}", "```",
	"```go", "db.AutoMigrate(&T{})", "db.Where(&T{ID: 1}).Delete(&T{})", "```",
	"```go", "func() {", `	panic("in a function")`, "}()", "```",
	"```go", "type Row struct{ ID chan int }", "```",
	"```go", "func declared(ctx context.Context) error {", `	return errors.New("returned")`, "}", "```",
	"```go", "func TestIt(t *testing.T) {", `	t.Fatal("this is wrong")`, "}", "```",
	"text, and `gormlock.Attempts(0)`",
	"```go", "a := 1", "```",
	"```go", `tx.Exec("SELECT nonsense LIMIT 0")`, "```",
}, "\n")}

// endless is a document of a snippet that waits for itself.
var endless = document{path: "endless.md", text: strings.Join([]string{
	"```go", "db.AutoMigrate(&T{})", "gormlock.AcquireXactLock(tx, []lockkey.Key{key})", "db.Scopes(gormlock.WithXactLock(key)).Create(&T{})", "```",
}, "\n")}

func seesWhatDoesNotRun(t *testing.T, bin string) {
	t.Helper()
	want := []runner.Result{
		{Line: 3, Error: "assigned"},
		{Line: 7, Error: `column "nonsense" does not exist`},
		{Line: 12, Error: "in a block"},
		{Line: 16, Error: "0 rows of ts"},
		{Line: 20, Error: "panic: in a function"},
		{Line: 24, Error: "unsupported data type"},
		{Line: 27, Error: "returned"},
		{Line: 32, Error: "its test fails"},
		{Line: 36, Error: "Attempts(0)"},
		{Line: 38, Error: ""},
		{Line: 41, Error: `column "nonsense" does not exist`},
		{Line: 4, Error: "it has not ended after 5s"},
	}
	got := append(runDocument(t, bin, broken, limit), runDocument(t, bin, endless, 5*time.Second)...)
	for i, w := range want {
		if i >= len(got) || got[i].Line != w.Line || !strings.Contains(got[i].Error, w.Error) || (got[i].Error == "") != (w.Error == "") {
			t.Errorf("snippet %d: want %+v in %+v", i, w, got)
		}
	}
}

// runDocument runs the snippets of a document. What ends the program before the last is an error of the test.
func runDocument(t *testing.T, bin string, d document, limit time.Duration) (results []runner.Result) {
	t.Helper()
	run := exec.CommandContext(t.Context(), filepath.Join(bin, "all.test"), d.path, pgtest.SchemaDSN(t), limit.String())
	run.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	var said bytes.Buffer
	run.Stderr = &said
	out, err := run.Output()
	failed := false
	for line := range bytes.Lines(out) {
		var r runner.Result
		if json.Unmarshal(line, &r) != nil || r.Document == "" {
			said.Write(line) // words of the snippet, or of its test
			continue
		}
		results, failed = append(results, r), failed || r.Error != ""
	}
	if err != nil && !failed {
		t.Errorf("%s: %v", d.path, err)
	}
	if words := strings.TrimSpace(said.String()); words != "" && words != "PASS" {
		t.Log(words)
	}
	return results
}
