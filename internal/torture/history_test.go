package torture_test

import (
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/gormlock/gormlock/internal/torture"
)

// The control of the models: they see what they are for.
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
	if torture.NewHistory(unanswered, 0, nil, map[string]bool{"a": true}).Fence(t) != porcupine.Illegal {
		t.Error("an unanswered stale write is not seen")
	}
}
