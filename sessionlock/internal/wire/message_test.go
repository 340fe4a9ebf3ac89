package wire

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/waits"
)

type placed holder.Place

func (p placed) Place() holder.Place { return holder.Place(p) }

func read(t *testing.T, m *Messages) []pgproto3.FrontendMessage {
	t.Helper()
	if m.err != nil {
		t.Fatal(m.err)
	}
	b := pgproto3.NewBackend(bytes.NewReader(m.buf), nil)
	var got []pgproto3.FrontendMessage
	for {
		message, err := b.Receive()
		if err != nil {
			return got
		}
		switch m := message.(type) { // each is of the backend, and changed by the next
		case *pgproto3.Bind:
			c := *m
			got = append(got, &c)
		case *pgproto3.Parse:
			c := *m
			got = append(got, &c)
		default:
			got = append(got, m)
		}
	}
}

func TestAddListed_isABinaryArray(t *testing.T) {
	t.Parallel()
	var m Messages
	AddListed(&m, Try.For(holder.Place{Space: 2}, Shared), []placed{{Space: 2, ID: 7}, {Space: 2, ID: -1}})
	m.AddSync()
	got := read(t, &m)
	if len(got) != 3 {
		t.Fatalf("%d messages, want Bind, Execute and Sync", len(got))
	}
	bind := got[0].(*pgproto3.Bind)
	array := []byte{
		0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 2, 0, 0, 0, 1,
		0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 7,
		0, 0, 0, 8, 255, 255, 255, 255, 255, 255, 255, 255,
	}
	if bind.PreparedStatement != "gormlock_try_pair_shared" || len(bind.Parameters) != 1 || !bytes.Equal(bind.Parameters[0], array) {
		t.Errorf("got %s with % x", bind.PreparedStatement, bind.Parameters)
	}
	if len(bind.ParameterFormatCodes) != 1 || bind.ParameterFormatCodes[0] != 1 || len(bind.ResultFormatCodes) != 1 || bind.ResultFormatCodes[0] != 1 {
		t.Errorf("formats %v and %v, want binary", bind.ParameterFormatCodes, bind.ResultFormatCodes)
	}
}

// L5: the transaction's lock waits, then the session's, which has nothing to wait for, before one Sync.
func TestAddWait_isOneTransaction(t *testing.T) {
	t.Parallel()
	var m Messages
	m.AddWait(Unlock.For(holder.Place{Space: 1}, Exclusive), holder.Place{Space: 1, ID: -5}, 800*time.Millisecond, waits.Before{})
	m.AddSync()
	var names, values []string
	syncs := 0
	for _, message := range read(t, &m) {
		switch message := message.(type) {
		case *pgproto3.Bind:
			names, values = append(names, message.PreparedStatement), append(values, string(message.Parameters[0]))
		case *pgproto3.Sync:
			syncs++
		}
	}
	want := []string{"gormlock_limit", "gormlock_wait", "gormlock_keep"}
	if len(names) != 3 || names[0] != want[0] || names[1] != want[1] || names[2] != want[2] || syncs != 1 {
		t.Errorf("got %q and %d Sync, want %q and one", names, syncs, want)
	}
	if len(values) != 3 || values[0] != "800" || values[1] != "-5" || values[2] != "-5" {
		t.Errorf("with %q", values)
	}
}

// A wait that goes on says so in the text of the statement that waits, which is the same but for that.
func TestAddWait_saysWhatWasBefore(t *testing.T) {
	t.Parallel()
	var m Messages
	variant := Unlock.For(holder.Place{Space: 2}, Shared)
	before := waits.Before{Waited: 1600 * time.Millisecond, Left: time.Minute}
	m.AddWait(variant, holder.Place{Space: 2, ID: 7}, time.Second, before)
	var got []string
	for _, message := range read(t, &m) {
		switch message := message.(type) {
		case *pgproto3.Parse:
			if text, ok := strings.CutPrefix(message.Query, waitSQL(int(variant))); !ok || waits.Read(text) != before || message.Name != "" {
				t.Errorf("it prepares %q as %q", message.Query, message.Name)
			}
			got = append(got, "parse")
		case *pgproto3.Bind:
			got = append(got, message.PreparedStatement)
		}
	}
	if want := []string{"gormlock_limit", "parse", "", "gormlock_keep_pair_shared"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A limit below the server's unit would be none.
func TestAddWait_alwaysHasALimit(t *testing.T) {
	t.Parallel()
	var m Messages
	m.AddWait(Unlock, holder.Place{Space: 1, ID: 1}, time.Microsecond, waits.Before{})
	if got := string(read(t, &m)[0].(*pgproto3.Bind).Parameters[0]); got != "1" {
		t.Errorf("the limit is %s ms", got)
	}
}

// Batches of many keys are written without garbage: thousands a second, while callers wait.
//
//nolint:paralleltest // allocations are counted for the whole process
func TestAddListed_allocatesNothing(t *testing.T) {
	keys := make([]placed, 64)
	var m Messages
	if n := testing.AllocsPerRun(100, func() {
		m.buf = m.buf[:0]
		AddListed(&m, Try, keys)
		m.AddSync()
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	id := []byte{255, 255, 255, 255, 255, 255, 255, 254}
	if at, err := ListedRow(Unlock.For(holder.Place{Space: 2}, Shared), [][]byte{id}); err != nil || at != (holder.Place{Space: 2, ID: -2}) {
		t.Errorf("got %v, %v", at, err)
	}
	if at, err := ListedRow(Rivals.For(holder.Place{Space: 1}, Exclusive), [][]byte{id}); err != nil || at != (holder.Place{Space: 1, ID: -2}) {
		t.Errorf("got %v, %v", at, err)
	}
	if at, n, err := TokenRow([][]byte{{0, 2}, id, {0, 0, 1, 0, 0, 0, 0, 3}}); err != nil || at != (holder.Place{Space: 2, ID: -2}) || n != 1<<40+3 {
		t.Errorf("got %v, %d, %v", at, n, err)
	}
	for _, values := range [][][]byte{nil, {id[:4]}, {id, id}} {
		if _, err := ListedRow(Try, values); err == nil {
			t.Errorf("% x passes for a key", values)
		}
		if _, _, err := TokenRow(values); err == nil {
			t.Errorf("% x passes for a token", values)
		}
	}
}

func TestStatement_variants(t *testing.T) {
	t.Parallel()
	for s := range Listed {
		kinds := 0
		for _, is := range []bool{s.IsUnlock(), s.IsTry(), s.IsRivals()} {
			if is {
				kinds++
			}
		}
		if kinds != 1 {
			t.Errorf("statement %d is of %d kinds", s, kinds)
		}
		if s.IsTry() && !s.Undo().IsUnlock() || s.IsTry() && s.Undo().Space() != s.Space() {
			t.Errorf("statement %d is undone by %d", s, s.Undo())
		}
	}
	for _, at := range []holder.Place{{Space: 1, ID: 5}, {Space: 2, ID: 5}} {
		for _, s := range []Statement{Unlock, Try, Rivals} {
			if got := s.For(at, Exclusive).Space(); got != at.Space {
				t.Errorf("of a key in space %d comes an answer in %d", at.Space, got)
			}
		}
	}
}
