package sessionlock_test

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/gormlock/gormlock/tests/internal/torture"
)

// seenInTime: a loss spans the time from the last proof to when it was seen (L2).
func seenInTime(lost torture.Event) (call, ret int64) { return lost.Call, lost.Return }

// seenFirst: a loss is the moment when it was seen, where the holder is to know before the server frees the lock.
func seenFirst(lost torture.Event) (call, ret int64) { return lost.Return, lost.Return }

// The control of the histories: they see a loss that was seen too late.
func TestLoss_seenLateIsSeen(t *testing.T) {
	t.Parallel()
	late := []torture.Event{
		{What: "held", Token: 1, Call: 10, Return: 11}, {What: "lost", Token: 1, Call: 12, Return: 30},
		{What: "held", Token: 2, Call: 20, Return: 21}, {What: "released", Token: 2, Call: 40, Return: 41},
	}
	if torture.NewHistory(late, 0, seenInTime, nil).Mutex(t) != porcupine.Ok {
		t.Error("a loss that is seen after the next one holds the lock is a violation, though the last proof was before")
	}
	if torture.NewHistory(late, 0, seenFirst, nil).Mutex(t) != porcupine.Illegal {
		t.Error("a loss that is seen after the next one holds the lock is no violation, though its holder is to know first")
	}
}
