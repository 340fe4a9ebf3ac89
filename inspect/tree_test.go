package inspect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// outline is a tree on one line: 1(2(3 4)), with * after the members of a circle.
func outline(nodes []*inspect.Node) string {
	var parts []string
	for _, n := range nodes {
		text := fmt.Sprint(n.PID)
		if n.Cycle {
			text += "*"
		}
		if len(n.Waiters) > 0 {
			text += "(" + outline(n.Waiters) + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// view makes a view of waits: who waits for what, since when, and who blocks it. holds says who holds things.
func view(holds map[int]string, waits ...wait) *inspect.View {
	v := &inspect.View{}
	sessions := map[int]*inspect.Session{}
	session := func(pid int) *inspect.Session {
		if sessions[pid] == nil {
			sessions[pid] = &inspect.Session{PID: pid}
			v.Sessions = append(v.Sessions, sessions[pid])
		}
		return sessions[pid]
	}
	for i, w := range waits {
		s := session(w.pid)
		s.Blockers = w.blockers
		for _, pid := range w.blockers {
			session(pid)
		}
		v.Locks = append(v.Locks, inspect.Lock{Thing: w.thing, Since: time.Unix(int64(i), 0), Session: s})
	}
	for pid, things := range holds {
		for thing := range strings.FieldsSeq(things) {
			v.Locks = append(v.Locks, inspect.Lock{Thing: thing, Granted: true, Waiters: 1, Session: session(pid)})
		}
	}
	return v
}

type wait struct {
	pid      int
	thing    string
	blockers []int
}

func TestTree_shapes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		holds map[int]string
		waits []wait
		want  string
	}{
		"nobody waits":    {map[int]string{}, nil, ""},
		"a chain":         {map[int]string{1: "a", 2: "b"}, []wait{{2, "a", []int{1}}, {3, "b", []int{2}}}, "1(2(3))"},
		"a queue is flat": {map[int]string{1: "a"}, []wait{{4, "a", []int{1}}, {2, "a", []int{1, 4}}, {3, "a", []int{1, 4, 2}}}, "1(4 2 3)"},
		"behind who waits only": {map[int]string{1: "a"}, []wait{{2, "a", []int{1}}, {3, "a", []int{2}}},
			"1(2(3))"},
		"two holders":             {map[int]string{1: "a", 2: "a"}, []wait{{3, "a", []int{1, 2}}}, "1(3)"},
		"a holder that waits":     {map[int]string{1: "a", 2: "a", 9: "b"}, []wait{{1, "b", []int{9}}, {3, "a", []int{1, 2}}}, "9(1) 2(3)"},
		"two that wait in a ring": {map[int]string{1: "a", 2: "b"}, []wait{{1, "b", []int{2}}, {2, "a", []int{1}}}, "1*(2*)"},
		"three, and one beside": {map[int]string{1: "a", 2: "b", 3: "c"},
			[]wait{{2, "a", []int{1}}, {3, "b", []int{2}}, {1, "c", []int{3}}, {7, "b", []int{2, 3}}}, "2*(3*(1*) 7)"},
		"a ring behind a holder": {map[int]string{1: "a", 2: "b", 9: "a"}, []wait{{1, "b", []int{2}}, {2, "a", []int{9, 1}}}, "1*(2*)"},
		"itself":                 {map[int]string{1: "a"}, []wait{{1, "a", []int{1}}}, "1*"},
		"gone":                   {map[int]string{}, []wait{{2, "a", []int{1}}}, "1(2)"},
	} {
		if got := outline(inspect.Tree(view(c.holds, c.waits...))); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A queue of hundreds, where each session is blocked by all before it, does not make a huge tree.
func TestTree_ofALongQueue(t *testing.T) {
	t.Parallel()
	var waits []wait
	blockers := []int{1}
	for pid := 2; pid < 600; pid++ {
		waits = append(waits, wait{pid, "a", append([]int(nil), blockers...)})
		blockers = append(blockers, pid)
	}
	began := time.Now()
	tree := inspect.Tree(view(map[int]string{1: "a"}, waits...))
	if len(tree) != 1 || len(tree[0].Waiters) != 598 {
		t.Errorf("%d roots", len(tree))
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestTree_ofAChainOfThree(t *testing.T) {
	t.Parallel()
	a, b := pgtest.Key(t, "a"), pgtest.Key(t, "b")
	one, two, three := pgtest.Conn(t), pgtest.Conn(t), pgtest.Conn(t)
	lock(t, one, a)
	lock(t, two, b)
	finishTwo := begin(t, two, "SELECT pg_advisory_xact_lock("+arguments(a)+")")
	finishThree := begin(t, three, "SELECT pg_advisory_xact_lock("+arguments(b)+")")
	tree := inspect.Tree(snapshot(t, pgtest.SQLDB(t), inspect.Known(a, b)))
	want := fmt.Sprintf("%d(%d(%d))", pid(one), pid(two), pid(three))
	if !strings.Contains(outline(tree), want) {
		t.Errorf("%s, want %s in it", outline(tree), want)
	}
	for _, n := range tree {
		if n.PID == pid(one) && (len(n.Holds) != 1 || n.Holds[0].Key != a.String() || n.Wait != nil || n.Waiters[0].Wait.Key != a.String()) {
			t.Errorf("%+v", n)
		}
	}
	unlock(t, one, a)
	finishTwo()
	unlock(t, two, b)
	finishThree()
}

// A deadlock that the server has not detected yet.
func TestTree_marksADeadlock(t *testing.T) {
	t.Parallel()
	a, b := pgtest.Key(t, "a"), pgtest.Key(t, "b")
	slow := pgtest.Param("deadlock_timeout", "5min")
	one, two := pgtest.Conn(t, slow), pgtest.Conn(t, slow)
	lock(t, one, a)
	lock(t, two, b)
	finishOne := begin(t, one, "SELECT pg_advisory_xact_lock("+arguments(b)+")")
	second := make(chan error, 1)
	go func() {
		_, err := two.Exec(t.Context(), "SELECT pg_advisory_xact_lock("+arguments(a)+")")
		second <- err
	}()
	pgtest.WaitBackendBlocked(t, pid(two))
	tree := outline(inspect.Tree(snapshot(t, pgtest.SQLDB(t))))
	if want := fmt.Sprintf("%d*(%d*)", pid(one), pid(two)); !strings.Contains(tree, want) {
		t.Errorf("%s, want %s in it", tree, want)
	}
	pgtest.Kill(t, pid(two))
	if <-second == nil {
		t.Error("the killed one got its lock")
	}
	finishOne()
	unlock(t, one, a)
}
