package journal

import (
	"sync"
	"sync/atomic"
)

var moments atomic.Int64

// Moment is a number that is greater than any before.
func Moment() int64 { return moments.Add(1) }

// Ever holds all steps of a transaction so far, even undone ones, because the program may move structs to places that an older step knows. It also
// holds steps that are never undone: those of statements that wrote none of their structs because they failed, were refused, or found no row. When
// the step of a failed statement is added, the server may have undone everything already, and memory follows only after that.
type Ever struct {
	Places any      // for the package that looks for the structs: where they are
	Wrote  int64    // the moment of the first text being undone now that may have written something; 0: there is none
	Used   sync.Map // the structs that the program used after they went astray, and when: for the package that knows the strays

	mu    sync.Mutex
	steps []Step
	tried []Step
}

// Since visits the steps from number step on, the oldest first, and then those that are never undone, from number tried on. It returns how many
// of both there are.
func (e *Ever) Since(step, tried int, visit func(Step)) (steps, alsoTried int) {
	e.mu.Lock()
	all, never := e.steps, e.tried
	e.mu.Unlock()
	for _, one := range all[step:] {
		visit(one)
	}
	for _, one := range never[tried:] {
		visit(one)
	}
	return len(all), len(never)
}

func (e *Ever) keep(step Step) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.steps = append(e.steps, step)
}

// KeepTried adds a step that is never undone: neither its Undo nor its Lose is called.
func (j *journal) KeepTried(step Step) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	all := j.past.all()
	all.mu.Lock()
	all.tried = append(all.tried, step)
	all.mu.Unlock()
	if j.gone || j.astray {
		j.strayStep(step, false)
	}
}
