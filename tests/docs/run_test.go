package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/docs/runner"
)

// limit is how long a snippet may run.
const limit = "20s"

// notRun are the calls in the text that are only compiled, and why.
var notRun = map[string]string{}

// The Go of the documents runs: blocks, calls in the text, and programs.
func TestDocs_goRuns(t *testing.T) {
	t.Parallel()
	p := &program{c: newCompiler(t), files: map[string]string{}}
	found := map[string]bool{}
	all := documents(t)
	for _, d := range all {
		var snippets []snippet
		for _, s := range d.snippets() {
			call := d.path + ": " + strings.TrimSpace(s.code)
			if _, left := notRun[call]; s.inline && left {
				found[call] = true
			} else {
				snippets = append(snippets, s)
			}
		}
		p.add(t, d, snippets)
	}
	for call, why := range notRun {
		if !found[call] {
			t.Errorf("there is no %s, which does not run because %s", call, why)
		}
	}
	bin := p.build(t)
	for _, d := range all {
		t.Run(d.path, func(t *testing.T) {
			ran := 0
			for _, r := range runDocument(t, bin, d) {
				if r.Error != "" {
					t.Errorf("%s:%d: %s", r.Document, r.Line, r.Error)
				}
				ran++
			}
			t.Logf("%d snippets ran", ran)
		})
	}
}

func runDocument(t *testing.T, bin string, d document) (results []runner.Result) {
	t.Helper()
	run := exec.CommandContext(t.Context(), bin+"/all", d.path, pgtest.SchemaDSN(t), limit)
	var said bytes.Buffer
	run.Stderr = &said
	out, err := run.Output()
	for line := range bytes.Lines(out) {
		var r runner.Result
		if json.Unmarshal(line, &r) != nil || r.Document == "" {
			continue // the snippet's own
		}
		results = append(results, r)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, said.String())
	}
	return results
}

var _, _ = fmt.Sprint, os.Environ
