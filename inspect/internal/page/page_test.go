package page_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/inspect/internal/page"
)

func written(t *testing.T, c *page.Content) string {
	t.Helper()
	var b strings.Builder
	if err := page.Write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// seen is a look with these nodes in its graph.
func seen(graph ...*page.Node) *page.Content {
	return &page.Content{Refresh: time.Second, Seen: &page.Seen{Where: page.Where{Taken: time.Unix(1, 0), Database: "shop"}, Graph: graph}}
}

func TestWrite_beforeAnythingWasSeen(t *testing.T) {
	t.Parallel()
	if html := written(t, &page.Content{Refresh: time.Second}); !strings.Contains(html, "connecting") || strings.Contains(html, `class="tiles"`) {
		t.Error(html)
	}
	html := written(t, &page.Content{Failure: "refused <b>", Silent: 90 * time.Second})
	if !strings.Contains(html, "refused &lt;b&gt;") || !strings.Contains(html, "for 90 s") || strings.Contains(html, "what was seen last") {
		t.Error(html)
	}
}

func TestWrite_formsAreForWhoMayEnd(t *testing.T) {
	t.Parallel()
	c := seen()
	c.Seen.Waits = []page.Row{
		{Key: "a", Session: page.Session{PID: 7, Started: time.Unix(1, 0)}},
		{Key: "b", Session: page.Session{PID: 8}}, // its start is hidden, so it may be another session by now
		{Key: "c", Session: page.Session{}},       // a prepared transaction
	}
	if html := written(t, c); strings.Contains(html, "<form") {
		t.Error("a page without a token has forms")
	}
	c.Token = "secret"
	if html := written(t, c); strings.Count(html, "<form") != 1 || !strings.Contains(html, `name="pid" value="7"`) {
		t.Errorf("want a form for session 7 alone in %s", html)
	}
	if html := written(t, c); strings.Contains(html, "Cancel query") {
		t.Error("there is no query to cancel")
	}
	c.Seen.Waits[0].Session.Statement = time.Unix(2, 3000)
	if html := written(t, c); !strings.Contains(html, `name="statement" value="1970-01-01T00:00:02.000003Z"`) || !strings.Contains(html, "Cancel query") {
		t.Errorf("want a button that cancels in %s", html)
	}
}

// Of many sessions some are drawn, and all are counted.
func TestGraph_ofACrowd(t *testing.T) {
	t.Parallel()
	root := &page.Node{PID: 1, Title: "holder"}
	for pid := 2; pid <= 101; pid++ {
		root.Waiters = append(root.Waiters, &page.Node{PID: pid, Title: fmt.Sprint("waiter ", pid), Waits: true, Blockers: []int{1}})
	}
	html := written(t, seen(root))
	if drawn := strings.Count(html, `class="card waiter"`); drawn != 12 {
		t.Errorf("%d waiters are drawn, want 12", drawn)
	}
	if !strings.Contains(html, "and 88 more") || !strings.Contains(html, "88 more sessions wait that are not drawn") {
		t.Error("the rest is not counted")
	}
}

// A circle is drawn with an edge for each wait in it.
func TestGraph_ofARing(t *testing.T) {
	t.Parallel()
	two := &page.Node{PID: 2, Title: "two", Waits: true, Ring: true, Blockers: []int{1}}
	one := &page.Node{PID: 1, Title: "one", Waits: true, Ring: true, Blockers: []int{2}, Waiters: []*page.Node{two}}
	html := written(t, seen(one))
	if cards, edges := strings.Count(html, `class="card ring"`), strings.Count(html, `class="edge ring"`); cards != 2 || edges != 2 {
		t.Errorf("%d cards and %d edges, want 2 and 2", cards, edges)
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 ms", 999 * time.Millisecond: "999 ms", 1500 * time.Millisecond: "1.5 s", 119 * time.Second: "119 s",
		119 * time.Minute: "119 min", 25*time.Hour + 90*time.Second: "25 h 1 min", 72 * time.Hour: "3 days",
	} {
		if got := page.Span(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

// gormlock's own statements are shown in words, with their SQL on request. Hints are shown beside the wait.
func TestWrite_saysWhatASessionDoesAndWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := seen()
	c.Seen.Waits = []page.Row{
		{Key: "a", Hint: "probably <db>", Session: page.Session{PID: 7, Doing: "takes invoice/42", Query: "SAVEPOINT gormlock; WITH"}},
		{Key: "b", Session: page.Session{PID: 8, Query: "UPDATE a"}},
	}
	html := written(t, c)
	for _, want := range []string{"<summary>takes invoice/42</summary><pre>SAVEPOINT gormlock; WITH</pre>", "<summary><code>UPDATE a</code></summary>", `<span class="hint">probably &lt;db&gt;</span>`} {
		if strings.Count(html, want) != 1 {
			t.Errorf("no %s in %s", want, html)
		}
	}
}

// A long name keeps both its ends on a card.
func TestGraph_ofALongName(t *testing.T) {
	t.Parallel()
	html := written(t, seen(&page.Node{PID: 1, Title: "holder", What: "holds row (0,12) of warehouse.stock_movements_of_today, report/daily"}))
	if !strings.Contains(html, ">holds row (0,12)…ay, report/daily</text>") {
		t.Error(html)
	}
}
