package sessionlock

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/sessionlock/internal/dial"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// lone is a session without a core.
func lone() *session {
	return newSession(&dial.Link{Server: &dial.Server{}, Since: time.Now()}, wire.Home, &outbox{})
}

func entries(n int) []*entry {
	all := make([]*entry, n)
	for i := range all {
		all[i] = &entry{id: holder.Place{Space: 1, ID: int64(i)}}
	}
	return all
}

func (s *session) askAll(st wire.Statement, all []*entry) {
	for _, e := range all {
		s.ask(st, e)
	}
}

// L10: a second batch is sent before the first is answered if it is large, or if both are small. A third never is.
func TestSession_atMostTwoBatchesOnTheWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, next int
		want        bool
	}{
		"few behind few":       {smallBatch - 1, 1, true},
		"few behind more":      {smallBatch, 1, false},
		"one less than enough": {smallBatch, secondBatch - 1, false},
		"enough":               {smallBatch, secondBatch, true},
		"nothing":              {1, 0, false},
	} {
		s := lone()
		s.askAll(wire.Try, entries(c.first))
		s.nextBatch()
		s.askAll(wire.Try, entries(c.next))
		if got := s.canSend(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if c.want {
			s.nextBatch()
			s.askAll(wire.Try, entries(secondBatch))
			if s.canSend() {
				t.Errorf("%s: a third is sent", name)
			}
		}
	}
}

func TestSession_canSend(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *session)
		want   bool
	}{
		"nothing":    {func(*session) {}, false},
		"keys":       {func(s *session) { s.askAll(wire.Try, entries(1)) }, true},
		"a repair":   {func(s *session) { s.repair(query{}) }, true},
		"a wait":     {func(s *session) { s.wait(entries(1)[0], time.Second) }, true},
		"a beat":     {func(s *session) { s.command(wire.Beat) }, true},
		"a token":    {func(s *session) { s.tokens = &issuer{waiting: []*tokenRequest{{}}} }, true},
		"no token":   {func(s *session) { s.tokens = &issuer{} }, false},
		"dead":       {func(s *session) { s.command(wire.Beat); s.dead = errSilent }, false},
		"is written": {func(s *session) { s.command(wire.Beat); s.writing = true }, false},
	} {
		s := lone()
		c.change(s)
		if got := s.canSend(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A write never blocks: everything on its way fits into the socket's buffer. Releases go first.
func TestSession_nextBatch(t *testing.T) {
	t.Parallel()
	s := lone()
	s.askAll(wire.Try, entries(maxKeys))
	s.askAll(wire.Unlock, entries(1))
	for range maxRepairs + 1 {
		s.repair(query{statement: wire.Unlock, again: true})
	}
	b := s.nextBatch()
	if n := len(b.queries); n != maxRepairs+2 || b.keys != maxKeys || b.queries[maxRepairs].statement != wire.Unlock {
		t.Fatalf("%s with %d keys, want all repairs that fit, then the unlock, then tries", b, b.keys)
	}
	if s.keys != 1 || len(s.repairs) != 1 {
		t.Errorf("%d keys and %d repairs are left, want one each", s.keys, len(s.repairs))
	}
	s.answered(b)
	s.recycle(b)
	if b = s.nextBatch(); len(b.queries) != 2 || b.keys != 1 {
		t.Errorf("then %s with %d keys", b, b.keys)
	}
	s.answered(b)
	if s.nextBatch() != nil || len(s.sent) != 0 {
		t.Error("a batch of nothing is sent")
	}
}

// The lists of a batch are used again by the next one.
func TestSession_recycle(t *testing.T) {
	t.Parallel()
	s := lone()
	s.askAll(wire.Try, entries(100))
	b := s.nextBatch()
	list := b.queries[0].entries
	s.answered(b)
	s.recycle(b)
	if list[0] != nil {
		t.Error("a list keeps entries that are answered")
	}
	s.askAll(wire.Unlock, entries(1))
	if again := s.nextBatch(); again != b {
		t.Error("the batch is not used again")
	}
	if cap(s.listed[wire.Unlock]) < 100 {
		t.Error("the list is not used again")
	}
}

func TestSession_isWaitingAndBusy(t *testing.T) {
	t.Parallel()
	s := lone()
	if s.isWaiting() || s.isBusy() {
		t.Error("a new session waits")
	}
	s.wait(entries(1)[0], time.Second)
	if !s.isWaiting() || !s.isBusy() {
		t.Error("before it is sent")
	}
	b := s.nextBatch()
	if !s.isWaiting() || !s.isBusy() {
		t.Error("after it is sent")
	}
	s.answered(b)
	if s.isWaiting() || s.isBusy() {
		t.Error("after it is answered")
	}
}

func TestPulse_asksBothClocks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, provenAt := range map[string]time.Time{
		"monotonic": now.Add(-7 * time.Second),
		"wall":      now.Round(0).Add(-7 * time.Second), // as after a sleep of the machine
	} {
		p := pulse{provenAt: provenAt}
		if d := p.silence(now); d < 7*time.Second || d > 8*time.Second {
			t.Errorf("%s: silent for %s", name, d)
		}
	}
}

func TestBatch_take(t *testing.T) {
	t.Parallel()
	tr := &tokenRequest{}
	b := &batch{queries: []query{
		{statement: wire.Try.For(holder.Place{Space: 2}, wire.Shared)},
		{statement: wire.Issue, tokens: map[holder.Place]*tokenRequest{{Space: 1, ID: 3}: tr}},
	}}
	three := []byte{0, 0, 0, 0, 0, 0, 0, 3}
	for i, c := range []struct {
		message pgproto3.BackendMessage
		done    bool
	}{
		{&pgproto3.BindComplete{}, false},
		{&pgproto3.DataRow{Values: [][]byte{three}}, false},
		{&pgproto3.ErrorResponse{Code: "57014"}, false},
		{&pgproto3.ReadyForQuery{}, false},
		{&pgproto3.DataRow{Values: [][]byte{{0, 1}, three, {0, 0, 0, 0, 0, 0, 0, 9}}}, false},
		{&pgproto3.NoticeResponse{Severity: "ATTENTION", SeverityUnlocalized: "WARNING"}, false},
		{&pgproto3.ReadyForQuery{}, true},
	} {
		if done, err := b.take(c.message); done != c.done || err != nil {
			t.Fatalf("message %d: %v, %v", i, done, err)
		}
	}
	if q := b.queries[0]; len(q.refused) != 1 || q.refused[0] != (holder.Place{Space: 2, ID: 3}) || q.err == nil || q.warned {
		t.Errorf("the first query: %+v", q)
	}
	if q := b.queries[1]; tr.number != 9 || !q.warned || q.err != nil {
		t.Errorf("the second query: %d, %+v", tr.number, q)
	}
	if _, err := b.take(&pgproto3.ReadyForQuery{}); err == nil {
		t.Error("an answer to nothing passes")
	}
	bad := &batch{queries: []query{{statement: wire.Try}}}
	if _, err := bad.take(&pgproto3.DataRow{Values: [][]byte{{1}}}); err == nil {
		t.Error("a row that was not asked for passes")
	}
}

func TestOutbox_eachSessionOnce(t *testing.T) {
	t.Parallel()
	s, idle := lone(), lone()
	o := s.outbox
	idle.outbox = o
	s.askAll(wire.Try, entries(2))
	o.add(idle)
	if len(o.sessions) != 2 {
		t.Fatalf("%d sessions, want each once", len(o.sessions))
	}
	if got, b := o.next(); got != s || b == nil || !s.writing {
		t.Errorf("got %v, %s", got, b)
	}
	if got, _ := o.next(); got != nil {
		t.Error("a session without anything to send is written to")
	}
	called := false
	o.call(func() { called = true })
	for _, call := range o.takeCalls() {
		call()
	}
	if !called || len(o.takeCalls()) != 0 {
		t.Error("a call is made never, or twice")
	}
}

func TestHolders(t *testing.T) {
	t.Parallel()
	var h holders
	e := &entry{}
	a, b, c := &Lock{entry: e}, &Lock{entry: e}, &Lock{entry: e}
	for _, l := range []*Lock{a, b, c} {
		h.add(l)
	}
	h.remove(b)
	if h.n != 2 || h.first != c || c.next != a || b.entry != nil || b.next != nil {
		t.Errorf("%d holders", h.n)
	}
	h.remove(c)
	h.remove(a)
	if h.n != 0 || h.first != nil {
		t.Errorf("%d holders are left", h.n)
	}
}

func TestErrors_areOneFact(t *testing.T) {
	t.Parallel()
	err := lockError(key(1), ErrLost, errSilent, "")
	if !errors.Is(err, ErrLost) || !errors.Is(err, errSilent) || errors.Is(err, ErrReleased) {
		t.Errorf("%v is not what it is", err)
	}
}
