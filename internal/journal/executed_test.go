package journal

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/sqltx"
)

// noted is a step that says what became of it.
type noted struct {
	name string
	said *[]string
}

func (n noted) Undo() { *n.said = append(*n.said, "undo "+n.name) }
func (n noted) Lose() { *n.said = append(*n.said, "lose "+n.name) }

const (
	open    = sqltx.Open
	aborted = sqltx.Aborted
	idle    = sqltx.Idle
)

// A text that failed halfway, and a transaction whose end is somebody else's, take back what is certain and lose the rest.
func TestExecuted(t *testing.T) {
	t.Parallel()
	type event struct {
		text   string // "" stands for a step
		answer sqltx.Answer
	}
	step := func(name string) event { return event{text: "step " + name} }
	did := func(text string) event { return event{text, sqltx.Answer{Before: open}} }
	abort := func(text string) event { return event{text, sqltx.Answer{Failed: true, After: aborted}} }
	failed := func(text string) event { return event{text, sqltx.Answer{Failed: true, Before: open}} }
	for name, c := range map[string]struct {
		events []event
		want   []string
	}{
		"set by a text that failed": {
			[]event{step("a"), failed("SAVEPOINT s; SELECT 1/0; RELEASE s"), step("b"), did("ROLLBACK TO s; RELEASE s")},
			[]string{"undo b"},
		},
		"set by a text that may not have set it, under a name that was set": {
			[]event{did("SAVEPOINT s"), step("a"), failed("SAVEPOINT s; SELECT 1/0"), step("b"), did("ROLLBACK TO s")},
			[]string{"undo b", "lose a"},
		},
		"a savepoint that failed alone": {
			[]event{did("SAVEPOINT s"), step("a"), failed("SAVEPOINT s"), did("ROLLBACK TO s")},
			[]string{"undo a"},
		},
		"a release that may have been": {
			[]event{did("SAVEPOINT s"), step("a"), did("SAVEPOINT s"), step("b"), failed("RELEASE s; SELECT 1/0"), did("ROLLBACK TO s")},
			[]string{"undo b", "lose a"},
		},
		"a rollback that may have been": {
			[]event{step("a"), did("SAVEPOINT s"), step("b"), failed("ROLLBACK TO s; SELECT 1/0")},
			[]string{"lose b"},
		},
		"a savepoint nobody knows":              {[]event{step("a"), did("ROLLBACK TO s")}, []string{"lose a"}},
		"a release of one nobody knows":         {[]event{did("SAVEPOINT s"), step("a"), did("RELEASE r"), did("ROLLBACK TO s")}, []string{"lose a"}},
		"prepared for two phases":               {[]event{step("a"), {"PREPARE TRANSACTION 'x'", sqltx.Answer{Before: open, After: idle}}}, []string{"lose a"}},
		"prepared, but aborted":                 {[]event{step("a"), {"PREPARE TRANSACTION 'x'", sqltx.Answer{Before: aborted, After: idle}}}, []string{"undo a"}},
		"committed":                             {[]event{step("a"), {"COMMIT", sqltx.Answer{Before: open, After: idle}}}, nil},
		"committed, but aborted":                {[]event{step("a"), {"COMMIT", sqltx.Answer{Before: aborted, After: idle}}}, []string{"undo a"}},
		"committed, by a driver that is silent": {[]event{step("a"), {"COMMIT", sqltx.Answer{}}}, []string{"lose a"}},
		"a commit that failed":                  {[]event{step("a"), {"COMMIT", sqltx.Answer{Failed: true, Before: open, After: idle}}}, []string{"lose a"}},
		"a commit among others that failed":     {[]event{step("a"), failed("COMMIT; BEGIN; SELECT 1/0")}, []string{"lose a"}},
		"ended by nobody knows what":            {[]event{step("a"), {"SELECT '\\', '; ROLLBACK; SELECT '\\''", sqltx.Answer{Before: open, After: idle}}}, []string{"lose a"}},
		"what is committed at once":             {[]event{{"COMMIT", sqltx.Answer{Before: open, After: idle}}, step("a"), did("ROLLBACK")}, nil},
		"aborted":                               {[]event{step("a"), abort("SELECT 1/0"), abort("SELECT 1"), did("ROLLBACK")}, []string{"undo a"}},
		"aborted behind a savepoint": {
			[]event{step("a"), did("SAVEPOINT s"), step("b"), abort("SELECT 1/0"), did("ROLLBACK TO s"), step("c"), did("ROLLBACK")},
			[]string{"undo b", "undo c", "undo a"},
		},
		"aborted, and rolled back to a savepoint before": {
			[]event{step("a"), did("SAVEPOINT s"), step("b"), did("SAVEPOINT u"), step("c"), abort("SELECT 1/0"), did("ROLLBACK TO s"), step("d"), did("ROLLBACK TO s")},
			[]string{"undo c", "undo b", "undo d"},
		},
		"aborted by a text that may have set a savepoint": {[]event{step("a"), abort("SAVEPOINT s; SELECT 1/0")}, []string{"lose a"}},
		"aborted, and it is not known behind what": {
			[]event{did("SAVEPOINT s"), step("a"), abort("SAVEPOINT u; SELECT 1/0"), did("ROLLBACK TO s"), step("b"), did("ROLLBACK TO s")},
			[]string{"lose a", "undo b"},
		},
		"aborted by a text of ours": {
			[]event{step("a"), {"SAVEPOINT s; SELECT 1/0", sqltx.Answer{Failed: true, Ours: true, After: aborted}}, did("ROLLBACK TO s"), did("ROLLBACK")},
			[]string{"undo a"},
		},
		"aborted by a text of ours behind a savepoint that may not be": {
			[]event{step("a"), failed("SAVEPOINT s; SELECT 1/0"), {"SELECT 1/0", sqltx.Answer{Failed: true, Ours: true, After: aborted}}}, []string{"lose a"},
		},
		"aborted behind a savepoint that only the server knows": {
			[]event{step("a"), did("RELEASE r"), step("b"), abort("SELECT 1/0")}, []string{"lose b", "lose a"},
		},
		"aborted while a statement is at work": {
			[]event{step("a"), {text: "begun"}, abort("SELECT 1/0"), step("b"), {text: "settled"}, did("ROLLBACK")}, []string{"undo a", "undo b"},
		},
		"a statement at work that does not end": {[]event{step("a"), {text: "begun"}, abort("SELECT 1/0"), did("ROLLBACK")}, []string{"undo a"}},
		"a closed connection": {
			[]event{step("a"), did("SAVEPOINT s"), step("b"), {"SELECT 1", sqltx.Answer{Failed: true, After: sqltx.Gone}}}, []string{"undo b", "undo a"},
		},
		"rolled back, and again": {[]event{step("a"), {"ROLLBACK; BEGIN", sqltx.Answer{Before: open, After: open}}, step("b"), did("ABORT")}, []string{"undo a", "undo b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, said := &journal{}, []string(nil)
			for _, e := range c.events {
				var step string
				if n, _ := fmt.Sscanf(e.text, "step %s", &step); n == 1 {
					j.Keep(noted{step, &said})
					continue
				}
				switch e.text {
				case "begun":
					j.begun()
					continue
				case "settled":
					j.settled()
					continue
				}
				j.Executed(sqltext.Read(e.text), e.answer)
			}
			if !slices.Equal(said, c.want) {
				t.Errorf("%q, want %q", said, c.want)
			}
		})
	}
}
