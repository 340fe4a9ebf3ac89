package lease_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// Every call that keeps a row refuses a key that stands for two, and the error says what to do.
func TestRenamed_isRefusedWithTheCure(t *testing.T) {
	t.Parallel()
	m := open(t, tables(t))
	k := lockkey.Renamed(lockkey.Of("report"), lockkey.Of("old"))
	never := func(context.Context) error { panic("it runs") }
	_, acquired := m.Acquire(t.Context(), k, time.Minute)
	_, slot := m.Acquire(t.Context(), k, time.Minute, lease.Slots(2))
	_, _, holder := m.Holder(t.Context(), k)
	_, token := fence.For(k, 1)
	for name, err := range map[string]error{
		"Acquire": acquired, "Slots": slot,
		"Do":      m.Do(t.Context(), k, time.Minute, never),
		"Lead":    m.Lead(t.Context(), k, time.Minute, never),
		"Every":   m.Every(t.Context(), k, lease.Interval(time.Hour), func(context.Context, time.Time) error { panic("it runs") }),
		"Elector": lease.Elector(m, k, time.Minute).IsLeader(t.Context()),
		"Holder":  holder, "fence.For": token,
	} {
		if err == nil || name != "fence.For" && !errors.Is(err, lease.ErrOption) || !strings.Contains(err.Error(), "see lockkey.Renamed") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if m.Leading(k) {
		t.Error("it leads")
	}
}

// The statements of docs/renaming-keys.md move a key: its tokens continue, old holders are refused, and the schedule repeats no tick.
func TestRenamed_theDocumentedMove(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/renaming-keys.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```sql\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("the page has no statements")
	}
	db := tables(t)
	m := open(t, db)
	before, after := lockkey.Int64(7), lockkey.Of("billing", "report")
	for range 5 {
		release(t, acquire(t, m, before, time.Minute))
		release(t, acquire(t, m, before, time.Minute, lease.Slots(2)))
	}
	settled := setBack(t, db, before, 90*time.Minute)
	whole := acquire(t, m, before, time.Minute)
	release(t, whole)
	slot := acquire(t, m, before, time.Minute, lease.Slots(2))
	release(t, slot)
	if _, err := db.ExecContext(t.Context(), block); err != nil {
		t.Fatal(err)
	}
	for _, old := range []*lease.Lease{whole, slot} {
		var passes bool
		if err := db.QueryRowContext(t.Context(), "SELECT "+old.Token().Guard(1), old.Token().Args()...).Scan(&passes); err != nil || passes {
			t.Errorf("a write with the token %s of before passes: %v, %v", old.Token(), passes, err)
		}
	}
	now := acquire(t, m, after, time.Minute)
	release(t, now)
	nowSlot := acquire(t, m, after, time.Minute, lease.Slots(2))
	release(t, nowSlot)
	if now.Token().Number <= whole.Token().Number || nowSlot.Token().Number <= slot.Token().Number {
		t.Errorf("after %s and %s came %s and %s", whole.Token(), slot.Token(), now.Token(), nowSlot.Token())
	}
	r := newRuns(t)
	every(t, m, after, lease.Interval(time.Hour), r.fn)
	if tick := r.next(); tick.Sub(settled) != time.Hour {
		t.Errorf("after the move came the tick of %s", tick.Sub(settled))
	}
}
