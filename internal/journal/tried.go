package journal

import (
	"sync"
	"sync/atomic"
)

var moments atomic.Int64

// Moment is a number that is greater than any before.
func Moment() int64 { return moments.Add(1) }

// Ever is all steps of a transaction so far, those too that were taken back: the caller may move later structs to where theirs are. It also has
// those that are never taken back: of statements that had structs and wrote none of them. They failed, were refused, or found no row. A
// statement that has failed is added when the server may have taken all back already, and memory follows only then.
type Ever struct {
	Places any      // what is known of where their structs are: who looks for these keeps it here
	Wrote  int64    // the moment of the first text that may have written something in what is taken back now; 0: there is none
	Used   sync.Map // the structs that the program has used since they went astray, and when: kept by who knows of strays

	mu    sync.Mutex
	steps []Step
	tried []Step
}

// Since visits the steps from numbers on, the oldest first, then those that are never taken back. It returns how many there are.
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

// KeepTried adds a step that is never taken back: neither its Undo nor its Lose is called.
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
