package main

import (
	"strings"
	"unicode/utf8"
)

// table is text in columns. Every cell is one line.
type table struct {
	head []string
	rows [][]cell
}

type cell struct {
	text  string
	paint func(string) string // nil: as it is
}

func plain(text string) cell { return cell{text: text} }

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// lines are the rows below their heads, as wide as what stands in them. A column
// without text is left out. With a width the last column is cut to fit.
func (t *table) lines(s style, width int) []string {
	widths := make([]int, len(t.head))
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	last := 0
	for i, w := range widths {
		if w > 0 {
			widths[i] = max(w, utf8.RuneCountInString(t.head[i]))
			last = i
		}
	}
	if width > 0 {
		rest := width
		for _, w := range widths[:last] {
			if w > 0 {
				rest -= w + 2
			}
		}
		widths[last] = min(widths[last], max(rest, 8))
	}
	head := make([]cell, len(t.head))
	for i, text := range t.head {
		head[i] = cell{text, s.dim}
	}
	lines := []string{join(head, widths, last)}
	for _, row := range t.rows {
		lines = append(lines, join(row, widths, last))
	}
	return lines
}

func join(row []cell, widths []int, last int) string {
	var b strings.Builder
	blanks := 0
	for i, c := range row {
		if widths[i] == 0 || i > last {
			continue
		}
		text := c.text
		if i == last {
			text = cut(text, widths[i])
		}
		if text != "" {
			b.WriteString(strings.Repeat(" ", blanks))
			blanks = 0
		}
		blanks += widths[i] - utf8.RuneCountInString(text) + 2
		if c.paint != nil {
			text = c.paint(text)
		}
		b.WriteString(text)
	}
	return b.String()
}
