package journal

import "slices"

// past is what happened in a transaction so far, and the savepoints to which it can be taken back.
type past struct {
	steps      []Step
	dooms      []error
	held       []heldLock // the locks that an observer is to hear the end of
	pretended  []func()   // frees locks that are kept in memory
	savepoints []savepoint
	written    int  // how many texts may have written something
	unsure     bool // there is a savepoint, or none any more, that only the server knows the name of
}

// savepoint is how long the past was when it was set.
type savepoint struct {
	name                                   string
	steps, dooms, held, pretended, written int
	maybe                                  bool // the server may not have it: the text that set or released it failed halfway
}

func (p *past) set(name string, maybe bool) {
	p.unsure = p.unsure || name == ""
	p.savepoints = append(p.savepoints, savepoint{name, len(p.steps), len(p.dooms), len(p.held), len(p.pretended), p.written, maybe})
}

// find is the newest savepoint of this name, and the oldest that the server can mean by it: they differ where the newest may
// not be there. Both are negative where it is not known what the server means.
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
		p.unsure = p.unsure || !maybe // one that nobody has heard of, and whatever was set after it
	case maybe || newest != oldest:
		p.doubt(oldest)
	default:
		p.savepoints = p.savepoints[:newest]
	}
}

// doubt says of a savepoint, and of those set after it, that they may not be there.
func (p *past) doubt(from int) {
	for i := from; i < len(p.savepoints); i++ {
		p.savepoints[i].maybe = true
	}
}

// rollBackTo cuts off what the server has taken back, and returns it, with what it may have taken back besides.
func (p *past) rollBackTo(name string) (undone, lost []Step, freed []heldLock) {
	newest, oldest := p.find(name)
	if newest < 0 {
		return nil, slices.Clone(p.steps), nil
	}
	set := p.savepoints[newest]
	undone = slices.Clone(p.steps[set.steps:])
	clear(p.steps[set.steps:])
	p.steps = p.steps[:set.steps]
	freed = slices.Clone(p.held[set.held:])
	p.held = p.held[:set.held]
	p.dooms = p.dooms[:set.dooms]
	p.savepoints = p.savepoints[:newest+1]
	if newest == oldest {
		p.savepoints[newest].maybe = false // the server has it
		p.written = set.written
	} else {
		lost = slices.Clone(p.steps[p.savepoints[oldest].steps:])
		p.doubt(oldest + 1)
	}
	return undone, lost, freed
}

// mayRollBackTo returns what a text that failed halfway may have taken back.
func (p *past) mayRollBackTo(name string) (lost []Step) {
	_, oldest := p.find(name)
	if oldest < 0 {
		return slices.Clone(p.steps)
	}
	p.doubt(oldest + 1)
	return slices.Clone(p.steps[p.savepoints[oldest].steps:])
}
