package main

import (
	"fmt"
	"strings"
)

// drawing is an SVG that is readable on light and dark pages: its colors are classes.
type drawing struct {
	strings.Builder
	width, height float64
}

const style = `<style>
.page { fill: #ffffff } .title { fill: #1f2328; font-size: 16px; font-weight: 600 } .text { fill: #1f2328 } .faint { fill: #59636e }
.grid { stroke: #d8dee4 } .axis { stroke: #59636e; stroke-width: 1.5 } .whisker { stroke: #1f2328; stroke-opacity: .55 } .target { stroke: #1f2328; stroke-width: 2.5 }
.a { fill: #0969da } .b { fill: #bc4c00 } .c { fill: #1a7f37 } .d { fill: #8c959f }
.la { stroke: #0969da } .lb { stroke: #bc4c00 } .lc { stroke: #1a7f37 } polyline { fill: none; stroke-width: 2.5; stroke-linejoin: round }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 } .title, .text { fill: #f0f6fc } .faint { fill: #9198a1 }
.grid { stroke: #30363d } .axis { stroke: #9198a1 } .whisker, .target { stroke: #f0f6fc }
.a { fill: #4493f8 } .b { fill: #e3883d } .c { fill: #3fb950 } .d { fill: #6e7681 }
.la { stroke: #4493f8 } .lb { stroke: #e3883d } .lc { stroke: #3fb950 }
}
</style>
`

// put adds an element.
func (d *drawing) put(format string, args ...any) { _, _ = fmt.Fprintf(d, format, args...) }

func newDrawing(width, height float64, title, below string) *drawing {
	d := &drawing{width: width, height: height}
	d.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13">`+"\n", width, height)
	d.WriteString(style)
	d.put(`<rect class="page" width="%.0f" height="%.0f" rx="8"/>`+"\n", width, height)
	d.text(20, 32, "start", "title", title)
	d.text(20, 53, "start", "faint", below)
	return d
}

// text writes at a baseline; anchor is start, middle or end.
func (d *drawing) text(x, y float64, anchor, class, text string) {
	d.put(`<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, escaped.Replace(text))
}

var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.put(`<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", class, x1, y1, x2, y2)
}

// bar draws a rectangle. hint is shown on hover.
func (d *drawing) bar(class string, x, y, width, height float64, hint string) {
	d.put(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"><title>%s</title></rect>`+"\n", class, x, y, width, height, escaped.Replace(hint))
}

func (d *drawing) dot(class string, x, y float64, hint string) {
	d.put(`<circle class="%s" cx="%.1f" cy="%.1f" r="4"><title>%s</title></circle>`+"\n", class, x, y, escaped.Replace(hint))
}

// legend names colors in a row.
func (d *drawing) legend(x, y float64, entries ...[2]string) {
	for _, e := range entries {
		d.put(`<rect class="%s" x="%.1f" y="%.1f" width="12" height="12" rx="2"/>`+"\n", e[0], x, y-11)
		d.text(x+18, y, "start", "text", e[1])
		x += 44 + 7.1*float64(len([]rune(e[1])))
	}
}

func (d *drawing) svg() string { return d.String() + "</svg>\n" }

// grouped is a whole number for people: 1,000,000.
func grouped(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
