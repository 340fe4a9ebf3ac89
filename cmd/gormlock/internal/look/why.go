package look

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/halt"
)

// Why says in words what a process waits for.
type Why struct {
	server.Target
	json bool
}

// Usage implements [cli.Command].
func (*Why) Usage() cli.Usage {
	return cli.Usage{
		Name: "why", Args: "PID", AtLeast: 1, AtMost: 1, Summary: "what a process waits for, in words, up to who is to blame",
		Details: `
Follows the waits from PID to whoever waits for nobody, says what each of them is doing,
and what can be done about it. A circle is named as one. Of a process that waits for
nothing it says who waits for it.

Examples
  gormlock why 4711
  gormlock why 4711 --json | jq '.chain[] | select(.root).pid'`,
		Exits: [3]string{0: "it waits for no lock", 1: "it waits for one", 2: "an error, such as no process of that number"},
	}
}

// Flags implements [cli.Command].
func (c *Why) Flags(set *flag.FlagSet) {
	c.Target.Flags(set)
	set.BoolVar(&c.json, "json", false, "JSON instead of words")
}

// link is one process of the chain.
type link struct {
	*inspect.Session
	Wait   *inspect.Lock `json:"wait,omitempty"` // what it waits for
	Root   bool          `json:"root"`           // others wait for it, and it waits for nobody
	Circle bool          `json:"circle"`         // it waits for itself through others
	Cure   []string      `json:"cure,omitempty"` // for a root, and for one of each circle
}

// chain is what why has found.
type chain struct {
	Waiting bool   `json:"waiting"`
	Links   []link `json:"chain"`
	Behind  []int  `json:"behind"` // who waits for the first link, directly or through others

	view *inspect.View
}

// Run implements [cli.Command].
func (c *Why) Run(ctx context.Context, p *cli.Program, args []string) error {
	pid, err := pidOf(args[0])
	if err != nil {
		return err
	}
	return c.Ask(ctx, "why", func(ctx context.Context, db *sql.DB) error { return c.follow(ctx, p, db, pid) })
}

func (c *Why) follow(ctx context.Context, p *cli.Program, db *sql.DB, pid int) error {
	b, err := backendAt(ctx, db, pid)
	if err != nil {
		return err
	}
	v, err := server.Snapshot(ctx, db, inspect.Limit(server.Matters))
	if err != nil {
		return err
	}
	ch := follow(v, b)
	if c.json {
		err = p.JSON(ch)
	} else {
		ch.print(p)
	}
	if err == nil && ch.Waiting {
		return cli.ErrFound
	}
	return err
}

// follow goes from b to everything it waits for, the nearest first.
func follow(v *inspect.View, b *backend) *chain {
	c := &chain{view: v, Behind: []int{}}
	waiting := map[int]*inspect.Lock{}
	for i := range v.Locks {
		if l := &v.Locks[i]; !l.Granted {
			waiting[l.PID] = l
		}
	}
	first := v.Session(b.PID)
	if first == nil {
		first = &b.Session
	}
	circle := circles(v)
	seen := map[*inspect.Session]bool{first: true}
	for queue := []*inspect.Session{first}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		l := link{Session: s, Wait: waiting[s.PID], Circle: circle[s.PID]}
		l.Root = len(s.Blockers) == 0 && s != first
		if l.Root || l.Circle {
			l.Cure = append(own(v, s), cure(s, l.Circle)...)
		}
		c.Links = append(c.Links, l)
		for _, next := range blockers(v, s, l.Wait) {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	c.Waiting = len(first.Blockers) > 0 || waiting[first.PID] != nil
	c.Behind = behind(v, first.PID)
	return c
}

// blockers are the sessions that s waits for. Prepared transactions all have the PID 0, so they are told apart by the locks that they hold.
func blockers(v *inspect.View, s *inspect.Session, wanted *inspect.Lock) []*inspect.Session {
	var found []*inspect.Session
	for _, pid := range s.Blockers {
		if b := v.Session(pid); b != nil && b.Prepared == "" {
			found = append(found, b)
		}
	}
	for i := range v.Locks {
		if l := &v.Locks[i]; wanted != nil && l.Granted && l.Prepared != "" && l.Thing == wanted.Thing {
			found = append(found, l.Session)
		}
	}
	return found
}

// circles are the processes that wait for themselves through others.
func circles(v *inspect.View) map[int]bool {
	in := map[int]bool{}
	var mark func([]*inspect.Node)
	mark = func(nodes []*inspect.Node) {
		for _, n := range nodes {
			in[n.PID] = in[n.PID] || n.Cycle
			mark(n.Waiters)
		}
	}
	mark(inspect.Tree(v))
	return in
}

// behind are the processes that wait for pid, directly or through others.
func behind(v *inspect.View, pid int) []int {
	found := []int{}
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, s := range v.Sessions {
			if slices.Contains(s.Blockers, queue[0]) && s.PID != pid && !slices.Contains(found, s.PID) {
				found = append(found, s.PID)
				queue = append(queue, s.PID)
			}
		}
	}
	slices.Sort(found)
	return found
}

// own says what to do about a transaction for which its own program waits, or nothing.
func own(v *inspect.View, s *inspect.Session) []string {
	if !strings.HasPrefix(s.State, "idle in transaction") || !slices.ContainsFunc(v.Locks, func(l inspect.Lock) bool {
		return l.HintPID != 0 && l.HintPID == s.PID
	}) {
		return nil
	}
	which := "in its program"
	if s.Application == "" {
		which = "if it is the program that waits for it"
	}
	return []string{which + ", use tx in place of db inside of the transaction: until a timeout it waits for itself"}
}

// cure says what to do about a process for which others wait.
func cure(s *inspect.Session, circle bool) []string {
	end := fmt.Sprintf("gormlock terminate %d", s.PID)
	switch {
	case circle:
		return []string{fmt.Sprintf("gormlock cancel %d: it gets an error, the others get on", s.PID)}
	case s.Prepared != "":
		return []string{"COMMIT PREPARED " + server.QuoteText(s.Prepared) + " or ROLLBACK PREPARED " + server.QuoteText(s.Prepared) + ", in its database"}
	case s.Gone:
		return []string{"it has ended meanwhile: look again"}
	case s.Hidden:
		return []string{"what it does is hidden from this role: GRANT pg_read_all_stats to it, or look as the owner", end + " ends it, if you may"}
	case halt.Runs(s.State):
		return []string{"it works: let it finish", fmt.Sprintf("gormlock cancel %d ends the statement, with an error in its program", s.PID)}
	case strings.HasPrefix(s.State, "idle in transaction"):
		return []string{
			"its program has to commit or roll back: look what it waits for outside of the database",
			end + " rolls it back and frees its locks; there is no statement to cancel",
			"idle_in_transaction_session_timeout does that by itself",
		}
	case s.State == "disabled":
		return []string{
			"whether it works or is idle in a transaction is not shown, as track_activities is off for it: let its role set that on",
			end + " ends its session and frees its locks, whatever it does",
		}
	case s.State == "idle":
		who := "its program"
		if s.Owner != "" {
			who = terminal.OneLine(s.Owner)
		}
		return []string{
			"it holds a session lock while " + who + " works on something else: let it finish",
			end + " takes the lock from it; make sure that it stops, or that its writes are fenced",
		}
	}
	return []string{"it is a process of the server itself: let it finish"}
}

func (c *chain) print(p *cli.Program) {
	for i, l := range c.Links {
		if i > 0 {
			p.Printf("\n")
		}
		c.printLink(p, l, i == 0)
	}
	if len(c.Behind) > 0 && !c.Links[0].Circle {
		p.Printf("\n%s for %d, itself or through others: %s\n", waits(len(c.Behind), ""), c.Links[0].PID, pidList(c.Behind))
	}
	var advice []string
	for _, l := range c.Links {
		for _, text := range l.Cure {
			advice = append(advice, fmt.Sprintf("  %s: %s", process(l.Session), text))
		}
	}
	if !c.Waiting && len(c.Behind) > 0 {
		for _, text := range append(own(c.view, c.Links[0].Session), cure(c.Links[0].Session, false)...) {
			advice = append(advice, fmt.Sprintf("  %s: %s", process(c.Links[0].Session), text))
		}
	}
	if len(advice) > 0 {
		p.Printf("\n%s\n%s\n", p.Style.Bold("What to do"), strings.Join(advice, "\n"))
	}
	for _, u := range c.view.Unseen {
		p.Printf("%s\n", p.Style.Yellow("not seen: "+terminal.OneLine(u)))
	}
}

func (c *chain) printLink(p *cli.Program, l link, first bool) {
	now := c.view.Taken
	p.Printf("%s\n", p.Style.Bold(describe(l.Session, now)))
	if text := statement(l.Session); text != "" {
		if !halt.Runs(l.State) {
			text = "last: " + text
		}
		p.Printf("  %s\n", text)
	}
	switch {
	case l.Circle:
		p.Printf("  %s\n", p.Style.Red(c.waitsFor(l, now)))
		p.Printf("  %s\n", p.Style.Red("they wait for each other in a circle, which only an error in one of them ends"))
	case l.Wait != nil || len(l.Blockers) > 0:
		p.Printf("  %s\n", p.Style.Red(c.waitsFor(l, now)))
	case first:
		p.Printf("  waits for no lock\n")
	default:
		p.Printf("  %s\n", p.Style.Yellow("waits for no lock: the others wait for it"))
	}
	if l.Wait != nil && l.Wait.Hint != "" {
		p.Printf("  %s\n", p.Style.Yellow(terminal.OneLine(l.Wait.Hint)))
	}
}

// waitsFor says what a link waits for, and who has it.
func (c *chain) waitsFor(l link, now time.Time) string {
	if l.Wait == nil {
		return "waits for " + pidList(l.Blockers)
	}
	text := "waits"
	if !l.Wait.Since.IsZero() {
		text += " " + terminal.Span(now.Sub(l.Wait.Since))
	}
	text += " for " + thing(l.Wait)
	var holders, others []int
	for _, pid := range l.Blockers {
		if c.holds(pid, l.Wait) {
			holders = append(holders, pid)
		} else {
			others = append(others, pid)
		}
	}
	switch {
	case len(holders) > 0 && len(others) > 0:
		text += fmt.Sprintf(", which %s holds, behind %s in the queue", pidList(holders), pidList(others))
	case len(holders) > 0:
		text += fmt.Sprintf(", which %s holds", pidList(holders))
	case len(others) > 0:
		text += fmt.Sprintf(", behind %s", pidList(others))
	}
	return text
}

func (c *chain) holds(pid int, wanted *inspect.Lock) bool {
	return slices.ContainsFunc(c.view.Locks, func(l inspect.Lock) bool {
		return l.Granted && l.PID == pid && l.Thing == wanted.Thing
	})
}

// thing names what a request waits for.
func thing(l *inspect.Lock) string {
	if l.Kind == inspect.Advisory {
		return fmt.Sprintf("the lock %s (%s)", terminal.OneLine(l.Key), l.Mode)
	}
	return fmt.Sprintf("%s (%s)", terminal.OneLine(l.Key), l.Mode)
}
