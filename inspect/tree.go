package inspect

import (
	"cmp"
	"slices"
)

// Node is a session in the tree of who waits for whom.
type Node struct {
	*Session
	Wait    *Lock   `json:"wait,omitempty"`  // what it waits for; nil of one that waits for nothing
	Holds   []*Lock `json:"holds,omitempty"` // what it holds that others wait for
	Cycle   bool    `json:"cycle,omitempty"` // it waits for itself through others
	Waiters []*Node `json:"waiters,omitempty"`
}

// Tree returns who waits for whom. The roots block others and wait for nobody; below each are the sessions that wait for it,
// longest first. A session that waits for several is there once, if possible below one that holds what it wants; its
// Blockers name them all.
//
// A nil View has no tree. Sessions that wait in a circle have Cycle set. If none of them waits for a session
// outside, the circle starts at the one that has waited longest.
func Tree(v *View) []*Node {
	if v == nil {
		return nil
	}
	t := &tree{nodes: map[int]*Node{}}
	for _, s := range v.Sessions {
		t.nodes[s.PID] = &Node{Session: s}
	}
	for i := range v.Locks {
		l := &v.Locks[i]
		n := t.nodes[l.PID]
		switch {
		case n == nil:
		case !l.Granted:
			n.Wait = l
		case l.Waiters > 0:
			n.Holds = append(n.Holds, l)
		}
	}
	t.markCycles()
	return t.grow()
}

type tree struct {
	nodes map[int]*Node
}

// order is longest wait first, then by PID.
func order(a, b *Node) int {
	var left, right int64
	if a.Wait != nil {
		left = a.Wait.Since.UnixNano()
	}
	if b.Wait != nil {
		right = b.Wait.Since.UnixNano()
	}
	return cmp.Or(cmp.Compare(left, right), cmp.Compare(a.PID, b.PID))
}

func (t *tree) sorted() []*Node {
	var list []*Node
	for _, n := range t.nodes {
		list = append(list, n)
	}
	slices.SortFunc(list, order)
	return list
}

// grow puts each waiter below one of its blockers and returns those that are below none. The session that has waited longest comes last, and so
// does the start of a circle.
func (t *tree) grow() []*Node {
	parent := map[*Node]*Node{}
	list := t.sorted()
	for _, n := range slices.Backward(list) {
		if p := t.parent(n); p != nil && !leadsTo(parent, p, n) {
			parent[n] = p
		}
	}
	for _, n := range list {
		if p := parent[n]; p != nil {
			p.Waiters = append(p.Waiters, n)
		}
	}
	var roots []*Node
	for _, n := range list {
		if parent[n] == nil && (len(n.Waiters) > 0 || n.Wait != nil) {
			roots = append(roots, n)
		}
	}
	slices.SortStableFunc(roots, func(a, b *Node) int { return cmp.Compare(longest(a), longest(b)) })
	return roots
}

// longest is the time since which somebody waits in the part of the tree at n, in its first two rows.
func longest(n *Node) int64 {
	if n.Wait == nil && len(n.Waiters) > 0 {
		n = n.Waiters[0]
	}
	if n.Wait == nil {
		return 0
	}
	return n.Wait.Since.UnixNano()
}

func leadsTo(parent map[*Node]*Node, from, to *Node) bool {
	for ; from != nil; from = parent[from] {
		if from == to {
			return true
		}
	}
	return false
}

// parent is the blocker under which n is shown: one in the same circle; otherwise one that holds something that others wait for and waits for
// nobody; otherwise any.
func (t *tree) parent(n *Node) *Node {
	var best *Node
	rank := -1
	for _, pid := range n.Blockers {
		b := t.nodes[pid]
		if b == nil {
			continue
		}
		r := 0
		if holdsFor(b, n.Wait) {
			r += 2
		}
		if n.Cycle && b.Cycle {
			r += 4
		}
		if b.Wait == nil {
			r++
		}
		if r > rank {
			best, rank = b, r
		}
	}
	return best
}

// holdsFor reports whether b holds what l waits for.
func holdsFor(b *Node, l *Lock) bool {
	return l != nil && slices.ContainsFunc(b.Holds, func(h *Lock) bool { return h.Thing == l.Thing })
}

// markCycles marks every node that reaches itself, by Tarjan's algorithm.
func (t *tree) markCycles() {
	index, low := map[*Node]int{}, map[*Node]int{}
	var stack []*Node
	var visit func(n *Node)
	visit = func(n *Node) {
		index[n], low[n] = len(index)+1, len(index)+1
		stack = append(stack, n)
		for _, pid := range n.Blockers {
			b := t.nodes[pid]
			switch {
			case b == nil:
			case index[b] == 0:
				visit(b)
				low[n] = min(low[n], low[b])
			case slices.Contains(stack, b):
				low[n] = min(low[n], index[b])
			}
			n.Cycle = n.Cycle || b == n
		}
		if low[n] != index[n] {
			return
		}
		at := slices.Index(stack, n)
		for _, m := range stack[at:] {
			m.Cycle = m.Cycle || len(stack)-at > 1
		}
		stack = stack[:at]
	}
	for _, n := range t.sorted() {
		if index[n] == 0 {
			visit(n)
		}
	}
}
