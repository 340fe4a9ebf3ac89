package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// locks is a table like that of ls.
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
		lines, left, _ := locks().Lines(false, c.width)
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
	lines, _, _ := table.Lines(true, 50)
	text := strings.Join(lines, "")
	if strings.Count(text, "k") != 100 {
		t.Errorf("the key is cut:\n%s", strings.Join(lines, "\n"))
	}
	if n := strings.Count(text, "d"); n < 130 || !strings.HasSuffix(lines[len(lines)-1], "…") {
		t.Errorf("%d characters of the long one:\n%s", n, strings.Join(lines, "\n"))
	}
}

// A colour takes no room, and ends with its cell.
func TestTable_paintsEachLine(t *testing.T) {
	t.Parallel()
	table := &Table{Head: []string{"STATE", "DOING"}}
	style := Style(true)
	table.Add(Painted("waits", style.Red), Painted("one two three four five six seven eight nine ten", style.Bold))
	lines, _, _ := table.Lines(style, 48)
	for _, line := range lines[1:] {
		if strings.Count(line, "\x1b[0m") != strings.Count(line, "\x1b[")/2 {
			t.Errorf("%q", line)
		}
	}
	if len(lines) != 3 || !strings.Contains(lines[2], "\x1b[1m") {
		t.Errorf("%q", lines)
	}
}

// longOnes are rows of ls: an id, a row, a key of 450 bytes, long names of programs.
func longOnes(key, application string) *Table {
	t := &Table{
		Head:  []string{"KEY", "TOKEN", "MODE", "SCOPE", "STATE", "FOR", "PID", "APPLICATION", "USER", "CLIENT", "BLOCKED BY", "DOING"},
		Spare: []string{"CLIENT", "TOKEN", "USER", "SCOPE", "MODE"},
	}
	for _, row := range [][]string{
		{"int64(1840925882773462882)", "", "exclusive", "session", "waits", "3s", "22745", "billing-7", "billing", "127.0.0.1:60674", "22612", "takes int64(1840925882773462882), timeout 1m"},
		{"row (0,3) of gormlock_lease", "", "ShareLock", "transaction", "waits", "12m3s", "22746", application, "shop", "127.0.0.1:60675", "22612 22745 22612 +3", "UPDATE gormlock_lease SET owner = 'b'"},
		{key, "1099511627786", "exclusive", "transaction", "blocks", "<6s", "22612", "worker-1", "shop", "local", "", "idle in transaction: took it"},
	} {
		var cells []Cell
		for _, text := range row {
			cells = append(cells, Plain(text))
		}
		t.Add(cells...)
	}
	return t
}

// A single long value takes no width from the others, however wide the terminal is. No id and no name is broken, and no column is left out that
// would fit without it.
func TestTable_aLongValueIsItsOwnMatter(t *testing.T) {
	t.Parallel()
	key := "tenant/" + strings.Repeat("k", 440) + "/42"
	application := "gormlock worker-production-eu-central-1:99182:K4TQ2WZ7"
	for _, width := range []int{80, 100, 120, 160, 200, 240} {
		_, spared, _ := longOnes("invoice/42", "worker-1").Lines(false, width)
		for name, c := range map[string]struct{ key, application string }{
			"key": {key, "worker-1"}, "application": {"invoice/42", application}, "a name that cannot be broken": {"invoice/42", strings.Repeat("a", 63)}, "all": {key, strings.Repeat("a", 63)},
		} {
			lines, left, _ := longOnes(c.key, c.application).Lines(false, width)
			text := strings.Join(lines, "\n")
			wants := []string{
				"int64(1840925882773462882) ", "gormlock_lease ", " waits ", " blocks ", " 12m3s ", " 22612", "22745", "22746", "billing-7 ", "worker-1",
			}
			if c.key == key {
				wants = append(wants, "\ntenant/", "/42")
			}
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("%s on %d columns: %q is broken:\n%s", name, width, want, text)
				}
			}
			if len(left) > len(spared) && width > 80 {
				t.Errorf("%s on %d columns: left out %q, and %q without it", name, width, left, spared)
			}
			for _, line := range lines {
				if utf8.RuneCountInString(line) > width {
					t.Errorf("%s: a line of %d on %d columns: %s", name, utf8.RuneCountInString(line), width, line)
				}
			}
			if len(lines) > 25 {
				t.Errorf("%s on %d columns: %d lines:\n%s", name, width, len(lines), text)
			}
		}
	}
}
