package docs

import (
	"strings"
	"testing"
)

// A page is read in five minutes. What is longer serves two readers: give each a page.
func TestDocs_pagesAreShort(t *testing.T) {
	t.Parallel()
	const most = 1100
	for _, d := range documents(t) {
		if !strings.HasPrefix(d.path, "docs/") && d.path != "README.md" || d.path == "docs/benchmarks.md" { // written by make bench
			continue
		}
		if n := d.words(); n > most {
			t.Errorf("%s has %d words, %d at most", d.path, n, most)
		}
	}
	if n := (document{text: "| a | b c |\n|---|---|\n| [d](e) | `f` |\n"}).words(); n != 5 {
		t.Errorf("a table of five words counts as %d", n)
	}
}

// words counts what a reader reads: code too, but not the lines of tables.
func (d document) words() (n int) {
	for _, word := range strings.Fields(d.text) {
		if strings.Trim(word, "|-") != "" {
			n++
		}
	}
	return n
}
