package sessionlock_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// mutexStep is one operation on one lock.
type mutexStep struct {
	lock   bool
	holder int64 // the token names the acquisition
}

// mutexModel: one holder at a time.
var mutexModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		step, holder := input.(mutexStep), state.(int64)
		if step.lock {
			return holder == 0, step.holder
		}
		return holder == step.holder, int64(0)
	},
}

// fenceStep is a token that was issued, or a write that was accepted.
type fenceStep struct {
	write bool
	token int64
}

// fenceModel: tokens grow, and no write is accepted once a later token was issued.
var fenceModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		step, latest := input.(fenceStep), state.(int64)
		if step.write {
			return step.token == latest, latest
		}
		return step.token > latest, step.token
	},
}

// histories turns what the workers said about one register into operations. A loss
// spans the time from the last proof to when it was seen (L2), or, where the holder is
// to know before the server frees the lock, is the moment when it was seen. What a killed
// process held ended at some time.
func histories(events []happened, register int, knowsFirst bool, audited map[string]bool) (mutex, fenced []porcupine.Operation) {
	ended := map[int64]bool{} // by token, which compare within a register only
	answered := map[string]bool{}
	for _, h := range events {
		if h.Register != register {
			continue
		}
		ended[h.Token] = ended[h.Token] || h.What == "released" || h.What == "lost" || h.What == "unsure"
		answered[h.Write] = answered[h.Write] || h.What == "written" || h.What == "refused"
	}
	add := func(to *[]porcupine.Operation, input any, call, ret int64) {
		*to = append(*to, porcupine.Operation{ClientId: len(*to), Input: input, Call: call, Return: ret})
	}
	for _, h := range events {
		if h.Register != register {
			continue
		}
		switch h.What {
		case "held":
			add(&mutex, mutexStep{true, h.Token}, h.Call, h.Return)
			add(&fenced, fenceStep{false, h.Token}, h.Call, h.Return)
			if !ended[h.Token] {
				add(&mutex, mutexStep{false, h.Token}, h.Return, math.MaxInt64)
			}
		case "released":
			add(&mutex, mutexStep{false, h.Token}, h.Call, h.Return)
		case "unsure":
			add(&mutex, mutexStep{false, h.Token}, h.Call, math.MaxInt64)
		case "lost":
			since := h.Call
			if knowsFirst {
				since = h.Return
			}
			add(&mutex, mutexStep{false, h.Token}, since, h.Return)
		case "written":
			add(&fenced, fenceStep{true, h.Token}, h.Call, h.Return)
		case "writing":
			if !answered[h.Write] && audited[h.Write] {
				add(&fenced, fenceStep{true, h.Token}, h.Call, math.MaxInt64)
			}
		}
	}
	return mutex, fenced
}

func check(t testing.TB, what string, model porcupine.Model, history []porcupine.Operation) porcupine.CheckResult {
	t.Helper()
	result := porcupine.CheckOperationsTimeout(model, history, time.Minute)
	if result != porcupine.Ok {
		t.Logf("%s: %d operations: %s", what, len(history), result)
	}
	return result
}

// The control of the models: they see what they are for.
func TestModels_seeAViolation(t *testing.T) {
	t.Parallel()
	two := []happened{
		{What: "held", Token: 1, Call: 10, Return: 11}, {What: "released", Token: 1, Call: 30, Return: 31},
		{What: "held", Token: 2, Call: 20, Return: 21}, {What: "released", Token: 2, Call: 40, Return: 41},
	}
	mutex, _ := histories(two, 0, false, nil)
	if check(t, "two holders", mutexModel, mutex) != porcupine.Illegal {
		t.Error("two holders are not seen")
	}
	late := []happened{
		{What: "held", Token: 1, Call: 10, Return: 11}, {What: "lost", Token: 1, Call: 12, Return: 30},
		{What: "held", Token: 2, Call: 20, Return: 21}, {What: "released", Token: 2, Call: 40, Return: 41},
	}
	for knowsFirst, want := range map[bool]porcupine.CheckResult{false: porcupine.Ok, true: porcupine.Illegal} {
		mutex, _ = histories(late, 0, knowsFirst, nil)
		if check(t, "a loss seen late", mutexModel, mutex) != want {
			t.Errorf("a loss that is seen after the next one holds the lock, knowsFirst=%t: not %s", knowsFirst, want)
		}
	}
	stale := []happened{
		{What: "held", Token: 1, Call: 10, Return: 11}, {What: "held", Token: 2, Call: 20, Return: 21},
		{What: "writing", Token: 1, Write: "a", Call: 30}, {What: "written", Token: 1, Write: "a", Call: 30, Return: 31},
	}
	_, fenced := histories(stale, 0, false, nil)
	if check(t, "a stale write", fenceModel, fenced) != porcupine.Illegal {
		t.Error("a stale write is not seen")
	}
	unanswered := slices.Delete(slices.Clone(stale), 3, 4)
	_, fenced = histories(unanswered, 0, false, map[string]bool{"a": true})
	if check(t, "an unanswered stale write", fenceModel, fenced) != porcupine.Illegal {
		t.Error("an unanswered stale write is not seen")
	}
}
