package journal

import "slices"

// past is what happened in a transaction so far, and the savepoints to which it can be rolled back.
type past struct {
	steps      []Step
	ever       *Ever // all steps, also undone ones; nil: there are none
	dooms      []error
	held       []heldLock // the locks whose end must be reported to an observer
	pretended  []func()   // frees locks that are kept in memory
	savepoints []savepoint
	written    int    // number of texts that may have written something
	stored     int    // number of those that may have stored something
	wrote      int64  // the moment of the first text that may have written something; 0: there is none
	path       int    // see journal.Path
	names      lookup // the texts that have set where names are looked up
	unsure     bool   // a savepoint was set or released, and only the server knows its name
}

// all are all steps, even undone ones.
func (p *past) all() *Ever {
	if p.ever == nil {
		p.ever = &Ever{}
	}
	return p.ever
}

// savepoint holds the lengths of the past's lists when it was set.
type savepoint struct {
	name                                           string
	steps, dooms, held, pretended, written, stored int
	wrote                                          int64 // the moment of the first text since then that may have written something; 0: there is none
	path                                           int
	names                                          lookup
	maybe                                          bool // it may not exist on the server, because the text that set or released it has failed
}

func (p *past) set(name string, maybe bool) {
	p.unsure = p.unsure || name == ""
	p.savepoints = append(p.savepoints, savepoint{name, len(p.steps), len(p.dooms), len(p.held), len(p.pretended), p.written, p.stored, 0, p.path, p.names, maybe})
}

// write notes a text that may have written something.
func (p *past) write() {
	now := Moment()
	p.written++
	if p.wrote == 0 {
		p.wrote = now
	}
	for i := len(p.savepoints) - 1; i >= 0 && p.savepoints[i].wrote == 0; i-- {
		p.savepoints[i].wrote = now
	}
}

// firstWrite is the moment of the first text after a savepoint that may have written something; 0: there is none. A negative savepoint means
// the beginning of the transaction.
func (p *past) firstWrite(savepoint int) int64 {
	if savepoint < 0 {
		return p.wrote
	}
	return p.savepoints[savepoint].wrote
}

// unwrite notes that everything written from a moment on is undone.
func (p *past) unwrite(from int64) {
	if p.wrote >= from {
		p.wrote = 0
	}
	for i := range p.savepoints {
		if p.savepoints[i].wrote >= from {
			p.savepoints[i].wrote = 0
		}
	}
}

// find returns the newest savepoint of this name, and the oldest one that the server may mean by it. They differ if the
// newest may not exist on the server. Both are negative if it is not known what the server means.
func (p *past) find(name string) (newest, oldest int) {
	newest, oldest = -1, -1
	if p.unsure {
		return newest, oldest
	}
	for i := len(p.savepoints) - 1; i >= 0; i-- {
		if p.savepoints[i].name != name {
			continue
		}
		if newest < 0 {
			newest = i
		}
		oldest = i
		if !p.savepoints[i].maybe {
			break
		}
	}
	return newest, oldest
}

// release forgets a savepoint and those set after it.
func (p *past) release(name string, maybe bool) {
	newest, oldest := p.find(name)
	switch {
	case newest < 0:
		p.unsure = p.unsure || !maybe // the journal does not know this savepoint, nor those after it
	case maybe || newest != oldest:
		p.doubt(oldest)
	default:
		p.savepoints = p.savepoints[:newest]
	}
}

// doubt notes that a savepoint, and those after it, may not exist on the server.
func (p *past) doubt(from int) {
	for i := from; i < len(p.savepoints); i++ {
		p.savepoints[i].maybe = true
	}
}

// taken holds steps that are undone, and the moment of the first text among them that may have written something; 0: there is none.
type taken struct {
	steps []Step
	wrote int64
}

// rollBackTo removes and returns the steps that the server has undone, and also returns the steps that it may have undone.
func (p *past) rollBackTo(name string) (undone, lost taken, freed []heldLock) {
	newest, oldest := p.find(name)
	if newest < 0 {
		return undone, taken{slices.Clone(p.steps), p.wrote}, nil
	}
	set := p.savepoints[newest]
	undone = taken{p.remove(set.steps), set.wrote}
	p.linger(undone.steps, newest)
	freed = slices.Clone(p.held[set.held:])
	p.held = p.held[:set.held]
	p.dooms = p.dooms[:set.dooms]
	p.savepoints = p.savepoints[:newest+1]
	if newest == oldest {
		p.savepoints[newest].maybe = false // the server has it
		p.written, p.stored, p.path, p.names = set.written, set.stored, set.path, set.names
		if set.wrote > 0 {
			p.unwrite(set.wrote)
		}
	} else {
		lost = taken{slices.Clone(p.steps[p.savepoints[oldest].steps:]), p.savepoints[oldest].wrote}
		p.doubt(oldest + 1)
	}
	return undone, lost, freed
}

// abort removes and returns the steps of an aborted transaction that cannot be committed any more. lost are the steps that may still be
// committed, because the last savepoint may not exist on the server. certain says that it exists.
func (p *past) abort(certain bool) (undone, lost taken) {
	if p.unsure {
		return undone, taken{p.remove(0), p.wrote}
	}
	last := len(p.savepoints) - 1
	undone = taken{p.remove(p.since(last)), p.firstWrite(last)}
	lingering := last
	for last >= 0 && p.savepoints[last].maybe && !certain {
		last--
	}
	lost = taken{p.remove(p.since(last)), p.firstWrite(last)}
	p.linger(undone.steps, min(lingering, last))
	return undone, lost
}

// since is the number of the first step after a savepoint. A negative savepoint means the beginning of the transaction.
func (p *past) since(savepoint int) int {
	if savepoint < 0 {
		return 0
	}
	return p.savepoints[savepoint].steps
}

// remove removes the steps from this number on, and returns them.
func (p *past) remove(from int) []Step {
	removed := slices.Clone(p.steps[from:])
	if len(removed) == 0 {
		return nil
	}
	clear(p.steps[from:])
	p.steps = p.steps[:from]
	for i := range p.savepoints {
		p.savepoints[i].steps = min(p.savepoints[i].steps, from)
	}
	return removed
}

// linger keeps lingering steps after a rollback to a savepoint if the transaction had written something before the savepoint.
func (p *past) linger(removed []Step, savepoint int) {
	if savepoint < 0 || p.savepoints[savepoint].written == 0 {
		return
	}
	for _, step := range removed {
		if _, lingers := step.(Lingering); lingers {
			p.steps = append(p.steps, step)
		}
	}
}

// mayRollBackTo returns the steps that a failed text may have undone.
func (p *past) mayRollBackTo(name string) (lost taken) {
	_, oldest := p.find(name)
	if oldest < 0 {
		return taken{slices.Clone(p.steps), p.wrote}
	}
	p.doubt(oldest + 1)
	return taken{slices.Clone(p.steps[p.savepoints[oldest].steps:]), p.savepoints[oldest].wrote}
}
