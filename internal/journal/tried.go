package journal

import "sync"

// Tried is a step of all statements of a transaction that had structs and wrote none of them: they failed, were refused, or found no row. A
// rollback takes nothing of them back, but the caller may have moved there what the transaction wrote before. A statement that has failed is
// added when the server may have taken all back already, and memory follows only then.
type Tried struct {
	mu    sync.Mutex
	steps []Step
}

// KeepTried adds a step to those. Neither Undo nor Lose is ever called.
func (j *journal) KeepTried(step Step) {
	j.Mu.Lock()
	tried := j.past.try()
	j.Mu.Unlock()
	tried.mu.Lock()
	defer tried.mu.Unlock()
	tried.steps = append(tried.steps, step)
}

// try makes room for such statements.
func (p *past) try() *Tried {
	if p.tried == nil {
		p.tried = &Tried{}
	}
	return p.tried
}

// Each visits the steps.
func (t *Tried) Each(visit func(Step)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, step := range t.steps {
		visit(step)
	}
}

// Undo implements Step, as does Lose.
func (*Tried) Undo() {}

// Lose does nothing either.
func (*Tried) Lose() {}
