package torture_test

import (
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/gormlock/gormlock/tests/internal/torture"
)

// The control of the models: they detect violations.
func TestHistory_seesAViolation(t *testing.T) {
	t.Parallel()
	orderly := []torture.Event{
		{What: "held", Token: 1, Call: 10, Return: 11}, {What: "written", Token: 1, Write: "a", Call: 12, Return: 13},
		{What: "released", Token: 1, Call: 20, Return: 31}, {What: "held", Token: 2, Call: 20, Return: 30},
	}
	if h := torture.NewHistory(orderly, 0, nil, nil); h.Mutex(t) != porcupine.Ok || h.Fence(t) != porcupine.Ok {
		t.Error("a violation is seen where there is none")
	}
	two := []torture.Event{
		{What: "held", Token: 1, Call: 10, Return: 11}, {What: "released", Token: 1, Call: 30, Return: 31},
		{What: "held", Token: 2, Call: 20, Return: 21}, {What: "released", Token: 2, Call: 40, Return: 41},
	}
	if torture.NewHistory(two, 0, nil, nil).Mutex(t) != porcupine.Illegal {
		t.Error("two holders are not seen")
	}
	stale := []torture.Event{
		{What: "held", Token: 1, Call: 10, Return: 11}, {What: "held", Token: 2, Call: 20, Return: 21},
		{What: "writing", Token: 1, Write: "a", Call: 30}, {What: "written", Token: 1, Write: "a", Call: 30, Return: 31},
	}
	if torture.NewHistory(stale, 0, nil, nil).Fence(t) != porcupine.Illegal {
		t.Error("a stale write is not seen")
	}
	unanswered := slices.Delete(slices.Clone(stale), 3, 4)
	if torture.NewHistory(unanswered, 0, nil, map[string]int{"a": 1}).Fence(t) != porcupine.Illegal {
		t.Error("an unanswered stale write is not seen")
	}
}

// The control of the semaphore: it detects one holder too many, and accepts as many as are allowed.
func TestSemaphore_seesOneTooMany(t *testing.T) {
	t.Parallel()
	events := []torture.Event{
		{What: "held", Register: 0, Token: 1, Call: 1, Return: 2}, {What: "held", Register: 1, Token: 1, Call: 1, Return: 2},
		{What: "released", Register: 0, Token: 1, Call: 10, Return: 11}, {What: "released", Register: 1, Token: 1, Call: 20, Return: 21},
		{What: "held", Register: 0, Token: 2, Call: 10, Return: 12}, {What: "released", Register: 0, Token: 2, Call: 30, Return: 31},
	}
	none := func(torture.Event) (int64, int64) { return 0, 0 }
	if torture.Semaphore(t, events, 2, none) != porcupine.Ok {
		t.Error("two of two are one too many")
	}
	if torture.Semaphore(t, events, 1, none) != porcupine.Illegal {
		t.Error("two of one are not seen")
	}
}

// A write without an answer ends before the next audited one of its register was answered.
func TestHistory_boundsWritesWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	events := []torture.Event{
		{What: "held", Token: 1, Call: 1, Return: 2}, {What: "writing", Token: 1, Write: "a", Call: 3},
		{What: "held", Token: 2, Call: 10, Return: 11}, {What: "written", Token: 2, Write: "b", Call: 12, Return: 13},
	}
	if torture.NewHistory(events, 0, nil, map[string]int{"a": 1, "b": 2}).Fence(t) != porcupine.Ok {
		t.Error("a write that was done before its successor is refused")
	}
	late := append(slices.Clone(events), torture.Event{What: "held", Token: 3, Call: 20, Return: 21}, torture.Event{What: "writing", Token: 1, Write: "c", Call: 22})
	if torture.NewHistory(late, 0, nil, map[string]int{"a": 1, "b": 2, "c": 3}).Fence(t) != porcupine.Illegal {
		t.Error("a write that came after its successors is not seen")
	}
}
