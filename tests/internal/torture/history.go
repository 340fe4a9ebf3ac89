package torture

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// mutexStep is one operation on one lock.
type mutexStep struct {
	take   bool
	holder int64 // the token names the acquisition
}

// mutexModel: one holder at a time.
var mutexModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		step, holder := input.(mutexStep), state.(int64)
		if step.take {
			return holder == 0, step.holder
		}
		return holder == step.holder, int64(0)
	},
}

// semaphoreModel: at most n holders at a time.
func semaphoreModel(n int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, input, _ any) (bool, any) {
			step, holders := input.(mutexStep), strings.Fields(state.(string))
			id := strconv.FormatInt(step.holder, 10)
			at := slices.Index(holders, id)
			if step.take {
				holders = append(holders, id)
				slices.Sort(holders)
				return at < 0 && len(holders) <= n, strings.Join(holders, " ")
			}
			if at < 0 {
				return false, state
			}
			return true, strings.Join(slices.Delete(holders, at, at+1), " ")
		},
	}
}

// Semaphore reports whether at most n workers held any of the registers at a time. Each register is a slot.
func Semaphore(t testing.TB, events []Event, n int, loss Loss) porcupine.CheckResult {
	t.Helper()
	var all []porcupine.Operation
	for register := range Registers {
		for _, op := range NewHistory(events, register, loss, nil).mutex {
			step := op.Input.(mutexStep)
			step.holder = step.holder*Registers + int64(register)
			op.Input, op.ClientId = step, len(all)
			all = append(all, op)
		}
	}
	return check(t, "semaphore", semaphoreModel(n), all)
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

// Loss says when a lock that a worker lost had ended: at some time from call to ret. Kinds of locks differ only in this.
type Loss func(lost Event) (call, ret int64)

// History is what was done to one register.
type History struct {
	mutex, fence []porcupine.Operation
}

// NewHistory turns the events of one register into operations. A lock that a killed process held, or that was released without an answer, ended at
// some time. A write without an answer counts where it was audited, by its place among all audited writes: it was done before the next one of its
// register was answered.
func NewHistory(events []Event, register int, loss Loss, audited map[string]int) History {
	ended := map[int64]bool{} // by token; tokens can only be compared within a register
	answered := map[string]bool{}
	for _, e := range events {
		if e.Register != register {
			continue
		}
		ended[e.Token] = ended[e.Token] || e.What == "released" || e.What == "lost" || e.What == "unsure"
		answered[e.Write] = answered[e.Write] || e.What == "written" || e.What == "refused"
	}
	var h History
	add := func(to *[]porcupine.Operation, input any, call, ret int64) {
		*to = append(*to, porcupine.Operation{ClientId: len(*to), Input: input, Call: call, Return: ret})
	}
	for _, e := range events {
		if e.Register != register {
			continue
		}
		switch e.What {
		case "held":
			add(&h.mutex, mutexStep{true, e.Token}, e.Call, e.Return)
			add(&h.fence, fenceStep{false, e.Token}, e.Call, e.Return)
			if !ended[e.Token] {
				add(&h.mutex, mutexStep{false, e.Token}, e.Return, math.MaxInt64)
			}
		case "released":
			add(&h.mutex, mutexStep{false, e.Token}, e.Call, e.Return)
		case "unsure":
			add(&h.mutex, mutexStep{false, e.Token}, e.Call, math.MaxInt64)
		case "lost":
			call, ret := loss(e)
			add(&h.mutex, mutexStep{false, e.Token}, call, ret)
		case "written":
			add(&h.fence, fenceStep{true, e.Token}, e.Call, e.Return)
		case "writing":
			if at := audited[e.Write]; !answered[e.Write] && at > 0 {
				add(&h.fence, fenceStep{true, e.Token}, e.Call, answeredAfter(events, register, audited, at))
			}
		}
	}
	return h
}

// answeredAfter returns when the first of the writes of a register that were audited after at was answered.
func answeredAfter(events []Event, register int, audited map[string]int, at int) (first int64) {
	first = math.MaxInt64
	for _, e := range events {
		if e.Register == register && e.What == "written" && audited[e.Write] > at {
			first = min(first, e.Return)
		}
	}
	return first
}

// Mutex reports whether at most one worker held the register at a time.
func (h History) Mutex(t testing.TB) porcupine.CheckResult {
	t.Helper()
	return check(t, "mutex", mutexModel, h.mutex)
}

// Fence reports whether tokens grew, and no write of a superseded worker was accepted.
func (h History) Fence(t testing.TB) porcupine.CheckResult {
	t.Helper()
	return check(t, "fence", fenceModel, h.fence)
}

func check(t testing.TB, what string, model porcupine.Model, history []porcupine.Operation) porcupine.CheckResult {
	t.Helper()
	result := porcupine.CheckOperationsTimeout(model, history, time.Minute)
	if result != porcupine.Ok {
		t.Logf("%s: %d operations: %s", what, len(history), result)
	}
	return result
}
