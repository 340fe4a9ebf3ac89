package terminal

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Table is text in columns. Every cell is one line if there is room for it.
type Table struct {
	Head []string
	// Spare are the heads of columns that can be left out if there is no room for all, in this order.
	Spare []string

	rows [][]Cell
}

// Cell is a text in a table.
type Cell struct {
	text  string
	paint func(string) string // nil: as it is
}

// Plain is a cell with a text that cannot move the cursor of a terminal: see [OneLine].
func Plain(text string) Cell { return Cell{text: OneLine(text)} }

// Painted is a cell in a colour, which takes no room. If paint is nil, it is [Plain].
func Painted(text string, paint func(string) string) Cell { return Cell{OneLine(text), paint} }

// Add adds a row.
func (t *Table) Add(cells ...Cell) { t.rows = append(t.rows, cells) }

const (
	gap     = 2  // between columns
	beside  = 40 // the width that the last column needs to be beside the others
	indent  = 4  // of the last column if it is below the others
	deepest = 3  // the most lines of a cell
	narrow  = 12 // the least width of a column
	long    = 30 // ids and most names are shorter
	longest = 60 // the width that a column gets if most of its cells are long, and there is no room for all
)

// Lines returns the rows below their heads, as wide as their content, and the heads of the columns that were left out. A column without text is
// left out silently.
//
// With a width no line is longer. Then the last column, which can have any length, continues on more lines. If little room is left beside the
// others, it is below them. Other cells continue on more lines too, long ones first. A cell that would take more than three lines is cut: in the
// last column at its end, in other columns in the middle. short are the heads of columns with such cells.
func (t *Table) Lines(s Style, width int) (lines, left, short []string) {
	l := t.layout(width)
	for _, at := range l.left {
		left = append(left, t.Head[at])
	}
	head := make([]Cell, len(t.Head))
	for i, text := range t.Head {
		head[i] = Cell{text, s.Dim}
	}
	if l.below {
		head[l.last] = Plain("")
	}
	lines = l.row(head)
	for _, row := range t.rows {
		lines = append(lines, l.row(row)...)
	}
	for at, head := range t.Head {
		if l.short[at] {
			short = append(short, head)
		}
	}
	return lines, left, short
}

// layout is how wide the columns of a table are.
type layout struct {
	widths []int  // 0: not shown
	last   int    // the column that can have any length
	below  bool   // the last column is below the others
	left   []int  // the columns that were left out
	short  []bool // the columns with cells that are cut in the middle, complete after all rows are laid out
}

func (t *Table) layout(width int) layout {
	l := layout{widths: make([]int, len(t.Head)), short: make([]bool, len(t.Head))}
	for _, row := range t.rows {
		for i, c := range row {
			l.widths[i] = max(l.widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for i, w := range l.widths {
		if w > 0 {
			l.widths[i] = max(w, utf8.RuneCountInString(t.Head[i]))
			l.last = i
		}
	}
	if width <= 0 || l.others()+l.widths[l.last] <= width {
		return l
	}
	whole := slices.Clone(l.widths)
	for i := range l.last {
		if l.widths[i] > 0 {
			l.widths[i] = t.usual(i)
		}
	}
	if rest := width - l.others(); rest >= beside {
		l.widths[l.last] = min(l.widths[l.last], rest)
		l.grow(whole, rest-l.widths[l.last])
		return l
	}
	l.below = true
	l.widths[l.last] = min(l.widths[l.last], max(width-indent, narrow))
	for _, head := range t.Spare {
		if at := slices.Index(t.Head, head); l.others()-gap > width && at >= 0 && l.widths[at] > 0 {
			l.left = append(l.left, at)
			l.widths[at] = 0
		}
	}
	floors := make([]int, l.last)
	for i := range floors {
		floors[i] = t.floor(i)
	}
	l.shrink(width, func(i int) int { return floors[i] })
	l.shrink(width, func(int) int { return narrow })
	l.grow(whole, width-(l.others()-gap))
	return l
}

// usual is the width that column i gets if there is no room for all. Long cells are ignored, unless most cells are long.
func (t *Table) usual(i int) int {
	usual, widest := t.floor(i), 0
	longs, cells := 0, 0
	for _, row := range t.rows {
		n := utf8.RuneCountInString(row[i].text)
		if n > 0 {
			cells++
		}
		if n > long {
			longs++
		} else {
			usual = max(usual, n)
		}
		widest = max(widest, n)
	}
	if longs*2 > cells {
		return max(usual, min(widest, longest))
	}
	return usual
}

// floor is the width at which column i breaks only long words.
func (t *Table) floor(i int) int {
	w := utf8.RuneCountInString(t.Head[i])
	for _, row := range t.rows {
		for word := range strings.SplitSeq(row[i].text, " ") {
			for piece := range strings.SplitAfterSeq(word, "/") {
				if n := utf8.RuneCountInString(piece); n <= long {
					w = max(w, n)
				} else {
					w = max(w, narrow)
				}
			}
		}
	}
	return w
}

// shrink takes width from the columns before the last, down to their floors, first from those furthest above their floor.
func (l layout) shrink(width int, floor func(int) int) {
	for over := l.others() - gap - width; over > 0; over = l.others() - gap - width {
		from, most := 0, 0
		for i := range l.last {
			if above := l.widths[i] - floor(i); l.widths[i] > 0 && above > most {
				from, most = i, above
			}
		}
		if most == 0 {
			return
		}
		l.widths[from] -= min(over, most)
	}
}

// grow gives the remaining width to columns that could use it, first to those that need least.
func (l layout) grow(whole []int, left int) {
	for left > 0 {
		to, least := 0, 0
		for i := range l.last {
			if more := whole[i] - l.widths[i]; l.widths[i] > 0 && more > 0 && (least == 0 || more < least) {
				to, least = i, more
			}
		}
		if least == 0 {
			return
		}
		l.widths[to] += min(least, left)
		left -= least
	}
}

// others is the width of the columns before the last, with the gaps after them.
func (l layout) others() int {
	sum := 0
	for _, w := range l.widths[:l.last] {
		if w > 0 {
			sum += w + gap
		}
	}
	return sum
}

// row is one row in as many lines as it needs.
func (l layout) row(row []Cell) []string {
	pieces := make([][]string, len(row))
	height := 1
	for i, c := range row {
		if i > l.last || l.widths[i] == 0 {
			continue
		}
		pieces[i] = Wrap(c.text, l.widths[i])
		if len(pieces[i]) > deepest {
			end := &pieces[i][deepest-1]
			if i == l.last {
				*end = Cut(*end, l.widths[i]-1) + "…"
			} else {
				text := []rune(c.text)
				*end = "…" + string(text[len(text)-l.widths[i]+1:])
				l.short[i] = true
			}
			pieces[i] = pieces[i][:deepest]
		}
		if i < l.last || !l.below {
			height = max(height, len(pieces[i]))
		}
	}
	var lines []string
	for n := range height {
		lines = append(lines, l.line(row, pieces, n))
	}
	if l.below {
		for _, text := range pieces[l.last] {
			if text != "" {
				lines = append(lines, strings.Repeat(" ", indent)+row[l.last].painted(text))
			}
		}
	}
	return lines
}

// line is the nth line of a row, without trailing blanks.
func (l layout) line(row []Cell, pieces [][]string, n int) string {
	var b strings.Builder
	blanks := 0
	for i, c := range row {
		if l.widths[i] == 0 || i > l.last || i == l.last && l.below {
			continue
		}
		text := ""
		if n < len(pieces[i]) {
			text = pieces[i][n]
		}
		if text != "" {
			b.WriteString(strings.Repeat(" ", blanks))
			blanks = 0
		}
		blanks += l.widths[i] - utf8.RuneCountInString(text) + gap
		b.WriteString(c.painted(text))
	}
	return b.String()
}

func (c Cell) painted(text string) string {
	if c.paint == nil {
		return text
	}
	return c.paint(text)
}

// Wrap breaks text into lines of at most width characters: between words if a word ends in the second half of the line, otherwise after a separator
// of names. A width of 0 means one line.
func Wrap(text string, width int) []string {
	if width <= 0 {
		return []string{text}
	}
	lines := []string{}
	for rest := []rune(text); ; {
		if len(rest) <= width {
			return append(lines, string(rest))
		}
		end, next := ending(rest, width)
		lines = append(lines, string(rest[:end]))
		rest = rest[next:]
	}
}

// ending says where the first line of a text ends, and where the next one begins.
func ending(text []rune, width int) (end, next int) {
	for at := width; at >= width/2; at-- {
		if text[at] == ' ' {
			return at, at + 1
		}
	}
	for at := width; at > width/2; at-- {
		if text[at-1] == '/' {
			return at, at
		}
	}
	return width, width
}
