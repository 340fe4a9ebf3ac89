package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// locks is a table as ls has it.
func locks() *Table {
	t := &Table{Head: []string{"KEY", "TOKEN", "STATE", "PID", "CLIENT", "BLOCKED BY", "DOING"}, Spare: []string{"CLIENT", "TOKEN"}}
	t.Add(Plain("invoice/42"), Plain(""), Plain("waits"), Plain("32688"), Plain("127.0.0.1:39424"), Plain("32677"), Plain("takes invoice/42, timeout 3s"))
	t.Add(Plain("row (0,1) of accounts"), Plain("7"), Plain("blocks"), Plain("32677"), Plain("local"), Plain(""), Plain("UPDATE accounts SET balance = balance - 100, updated_at = now() WHERE id = 42 AND tenant = 'a'"))
	return t
}

func TestTable_asWideAsThereIsRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		width int
		want  string
		left  string
	}{
		{0, `
KEY                    TOKEN  STATE   PID    CLIENT           BLOCKED BY  DOING
invoice/42                    waits   32688  127.0.0.1:39424  32677       takes invoice/42, timeout 3s
row (0,1) of accounts  7      blocks  32677  local                        UPDATE accounts SET balance = balance - 100, updated_at = now() WHERE id = 42 AND tenant = 'a'
`, ""},
		{120, `
KEY                    TOKEN  STATE   PID    CLIENT           BLOCKED BY  DOING
invoice/42                    waits   32688  127.0.0.1:39424  32677       takes invoice/42, timeout 3s
row (0,1) of accounts  7      blocks  32677  local                        UPDATE accounts SET balance = balance - 100,
                                                                          updated_at = now() WHERE id = 42 AND tenant =
                                                                          'a'
`, ""},
		{80, `
KEY                    TOKEN  STATE   PID    CLIENT           BLOCKED BY
invoice/42                    waits   32688  127.0.0.1:39424  32677
    takes invoice/42, timeout 3s
row (0,1) of accounts  7      blocks  32677  local
    UPDATE accounts SET balance = balance - 100, updated_at = now() WHERE id =
    42 AND tenant = 'a'
`, ""},
		{56, `
KEY                    TOKEN  STATE   PID    BLOCKED BY
invoice/42                    waits   32688  32677
    takes invoice/42, timeout 3s
row (0,1) of accounts  7      blocks  32677
    UPDATE accounts SET balance = balance - 100,
    updated_at = now() WHERE id = 42 AND tenant = 'a'
`, "CLIENT"},
		{40, `
KEY            STATE   PID    BLOCKED BY
invoice/42     waits   32688  32677
    takes invoice/42, timeout 3s
row (0,1) of   blocks  32677
accounts
    UPDATE accounts SET balance =
    balance - 100, updated_at = now()
    WHERE id = 42 AND tenant = 'a'
`, "CLIENT TOKEN"},
	} {
		lines, left := locks().Lines(false, c.width)
		if got := "\n" + strings.Join(lines, "\n") + "\n"; got != c.want || strings.Join(left, " ") != c.left {
			t.Errorf("width %d, left out %q: %s", c.width, left, got)
		}
		for _, line := range lines {
			if c.width > 0 && utf8.RuneCountInString(line) > c.width {
				t.Errorf("width %d: a line of %d: %s", c.width, utf8.RuneCountInString(line), line)
			}
		}
	}
}

func TestTable_cutsNothingButALongEnd(t *testing.T) {
	t.Parallel()
	table := &Table{Head: []string{"KEY", "DOING"}}
	table.Add(Plain(strings.Repeat("k", 100)), Plain(strings.Repeat("d", 500)))
	lines, _ := table.Lines(true, 50)
	text := strings.Join(lines, "")
	if strings.Count(text, "k") != 100 {
		t.Errorf("the key is cut:\n%s", strings.Join(lines, "\n"))
	}
	if n := strings.Count(text, "d"); n < 130 || !strings.HasSuffix(lines[len(lines)-1], "…") {
		t.Errorf("%d characters of the long one:\n%s", n, strings.Join(lines, "\n"))
	}
}

// A colour takes no room, and ends where its cell ends.
func TestTable_paintsEachLine(t *testing.T) {
	t.Parallel()
	table := &Table{Head: []string{"STATE", "DOING"}}
	style := Style(true)
	table.Add(Painted("waits", style.Red), Painted("one two three four five six seven eight nine ten", style.Bold))
	lines, _ := table.Lines(style, 48)
	for _, line := range lines[1:] {
		if strings.Count(line, "\x1b[0m") != strings.Count(line, "\x1b[")/2 {
			t.Errorf("%q", line)
		}
	}
	if len(lines) != 3 || !strings.Contains(lines[2], "\x1b[1m") {
		t.Errorf("%q", lines)
	}
}
