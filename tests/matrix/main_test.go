// Package matrix tries every feature on every server and behind every pooler that the tests can start, and holds docs/matrix.md
// to what it saw.
package matrix_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/sessionlock"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var update = flag.Bool("update", false, "write docs/matrix.md")

const page = "../../docs/matrix.md"

// The table stands between these lines of the page.
const begin, end = "<!-- what TestEveryFeature saw -->\n", "<!-- the end of what TestEveryFeature saw -->\n"

// feature is what a user asks of gormlock.
type feature struct {
	name string
	// try uses the feature and sees whether its rule holds. What gormlock refused is its error, a rule that did not hold is broken.
	try func(ctx context.Context, p *place) error
}

// broken is what no cell may say: the feature said that it worked, and did not.
type broken string

func (b broken) Error() string { return string(b) }

// Each feature works at each place, or is refused by an error, as docs/matrix.md says.
func TestEveryFeature(t *testing.T) {
	t.Parallel()
	features := append(rows(), locks()...)
	cells := make([][]string, len(features))
	for i := range cells {
		cells[i] = make([]string, len(servers))
	}
	for column, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p := s.open(t)
			for row, f := range features {
				ctx, cancel := context.WithTimeout(t.Context(), p.within)
				err := f.try(ctx, p)
				cells[row][column] = cell(ctx, t, s.name+": "+f.name, err)
				cancel()
			}
		})
	}
	t.Cleanup(func() { // the subtests are parallel: they end before it
		compare(t, features, cells)
	})
}

// cell is what the table says of an outcome.
func cell(ctx context.Context, t *testing.T, of string, err error) string {
	t.Helper()
	var rule broken
	var server *pgconn.PgError
	switch {
	case err == nil:
		return "works"
	case errors.As(err, &rule):
		t.Errorf("%s: %v", of, err)
		return "BROKEN"
	}
	for _, known := range []struct {
		err  error
		name string
	}{
		{gormlock.ErrNotPostgres, "ErrNotPostgres"},
		{gormlock.ErrServer, "ErrServer"},
		{sessionlock.ErrServer, "ErrServer"},
		{sessionlock.ErrPooler, "ErrPooler"},
		{sessionlock.ErrNoExclusion, "ErrNoExclusion"},
		{gormlock.ErrStandby, "ErrStandby"},
	} {
		if errors.Is(err, known.err) {
			t.Logf("%s: %v", of, err)
			return "`" + known.name + "`"
		}
	}
	t.Logf("%s: %v", of, err)
	if errors.Is(err, errNoDoor) {
		return "–"
	}
	if ctx.Err() != nil {
		return "waits"
	}
	if errors.As(err, &server) {
		return "error " + server.Code
	}
	return "error"
}

// compare holds the page to the table, column by column: where a server cannot be had, its column stays as it is.
func compare(t *testing.T, features []feature, cells [][]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	table, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no place for the table", page)
	}
	stands := map[string]string{}
	lines := strings.Split(strings.TrimSpace(table), "\n")
	for _, line := range lines[min(2, len(lines)):] {
		parts := strings.Split(strings.Trim(line, "| "), " | ")
		for i, part := range parts[1:] {
			if i < len(servers) {
				stands[parts[0]+"\x00"+servers[i].name] = part
			}
		}
	}
	var b strings.Builder
	b.WriteString("| Feature |")
	for _, s := range servers {
		fmt.Fprintf(&b, " %s |", s.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(servers)) + "\n")
	for row, f := range features {
		fmt.Fprintf(&b, "| %s |", f.name)
		for column, s := range servers {
			if cells[row][column] == "" {
				cells[row][column] = stands[f.name+"\x00"+s.name]
			}
			fmt.Fprintf(&b, " %s |", cells[row][column])
			if old := stands[f.name+"\x00"+s.name]; old != cells[row][column] && !*update {
				t.Errorf("%s on %s: %q, and %s says %q; go -C tests test ./matrix -update writes it", f.name, s.name, cells[row][column], page, old)
			}
		}
		b.WriteString("\n")
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+b.String()+end+after), 0o644); err != nil { //nolint:gosec // a page that everybody reads
			t.Fatal(err)
		}
	}
}
