package page

import (
	"fmt"
	"strings"
)

// The size of what is drawn, in pixels.
const (
	cardWidth  = 252
	cardHeight = 66
	columnGap  = 64
	rowGap     = 14
	margin     = 10
	cardText   = 33 // characters in a line of a card
)

// graph is the tree of waits as the page draws it: roots at the left, each waiter to the
// right of whom it waits for.
type graph struct {
	Width, Height int
	Cards         []card
	Edges         []edge
	Left          int // how many sessions are not drawn
}

type card struct {
	X, Y                int
	Class               string // what it is: holder, waiter, ring, more
	Title, What, Detail string // its lines, cut
	Full                string // all of it, shown on hover
	PID                 int
}

type edge struct {
	Path  string
	Class string
}

const (
	maxCards = 120
	maxRow   = 12 // the most waiters of one session that are drawn; the others are counted
)

// drawGraph returns nil if nobody waits.
func drawGraph(tree []*Node) *graph {
	if len(tree) == 0 {
		return nil
	}
	g := &graph{}
	drawn := map[int]card{}
	y := margin
	for i, root := range tree {
		if len(g.Cards) >= maxCards {
			for _, left := range tree[i:] {
				g.Left += size(left)
			}
			break
		}
		y = g.place(root, margin, y, drawn)
	}
	for _, root := range tree {
		g.closeRings(root, drawn)
	}
	for _, c := range g.Cards {
		g.Width = max(g.Width, c.X+cardWidth+margin)
		g.Height = max(g.Height, c.Y+cardHeight+margin)
	}
	return g
}

// place draws n and everything below it, and returns the y of the next card.
func (g *graph) place(n *Node, x, y int, drawn map[int]card) int {
	c := cardOf(n)
	c.X, c.Y = x, y
	drawn[n.PID] = c
	g.Cards = append(g.Cards, c)
	next := y
	for i, w := range n.Waiters {
		if i == maxRow && len(n.Waiters) > maxRow+1 || len(g.Cards) >= maxCards {
			left := 0
			for _, other := range n.Waiters[i:] {
				left += size(other)
			}
			g.Left += left
			more := card{X: x + cardWidth + columnGap, Y: next, Class: "more", Title: fmt.Sprintf("and %d more", left), What: "that wait behind them"}
			g.Cards = append(g.Cards, more)
			g.Edges = append(g.Edges, link(c, more, "edge"))
			return next + cardHeight + rowGap
		}
		g.Edges = append(g.Edges, link(c, card{X: x + cardWidth + columnGap, Y: next}, edgeClass(n, w)))
		next = g.place(w, x+cardWidth+columnGap, next, drawn)
	}
	return max(next, y+cardHeight+rowGap)
}

func edgeClass(blocker, waiter *Node) string {
	if blocker.Ring && waiter.Ring {
		return "edge ring"
	}
	return "edge"
}

// closeRings draws the edge of a circle that a tree leaves out: its first session waits for a later one.
func (g *graph) closeRings(n *Node, drawn map[int]card) {
	if n.Ring {
		for _, pid := range n.Blockers {
			if from, to := drawn[n.PID], drawn[pid]; to.PID != 0 && to.X > from.X {
				g.Edges = append(g.Edges, edge{fmt.Sprintf("M%d %dC%d %d %d %d %d %d", from.X+cardWidth/2, from.Y+cardHeight,
					from.X+cardWidth/2, from.Y+cardHeight+46, to.X+cardWidth/2, to.Y+cardHeight+46, to.X+cardWidth/2, to.Y+cardHeight+2), "edge ring"})
				g.Height = max(g.Height, max(from.Y, to.Y)+cardHeight+50)
			}
		}
	}
	for _, w := range n.Waiters {
		g.closeRings(w, drawn)
	}
}

// link goes from the waiter, on the right, to the session that it waits for.
func link(blocker, waiter card, class string) edge {
	x1, y1 := waiter.X, waiter.Y+cardHeight/2
	x2, y2 := blocker.X+cardWidth+2, blocker.Y+cardHeight/2
	middle := (x1 + x2) / 2
	return edge{fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, middle, y1, middle, y2, x2, y2), class}
}

func size(n *Node) int {
	count := 1
	for _, w := range n.Waiters {
		count += size(w)
	}
	return count
}

func cardOf(n *Node) card {
	c := card{PID: n.PID, Class: "holder", Title: squeeze(n.Title, cardText-4), What: squeeze(n.What, cardText)}
	detail := n.Detail
	switch {
	case n.Ring:
		c.Class = "ring"
		detail += ", deadlock"
	case n.Waits:
		c.Class = "waiter"
	}
	c.Full = strings.Join([]string{n.Title, n.What, detail, n.Query}, "\n")
	if n.PID != 0 {
		detail = fmt.Sprintf("%d · %s", n.PID, detail)
	}
	c.Detail = cut(strings.TrimSuffix(detail, " · "), cardText)
	return c
}
