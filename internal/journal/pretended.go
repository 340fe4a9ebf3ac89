package journal

import "slices"

// AtEnd calls free once, when the transaction has ended or was rolled back to an earlier savepoint. If it is not certain
// whether it was rolled back to one, free is called at the end. If the transaction has ended already, AtEnd reports false and
// never calls free.
func (j *journal) AtEnd(free func()) bool {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if j.over || j.gone {
		return false
	}
	j.past.pretended = append(j.past.pretended, free)
	return true
}

// Abandoned is called when the end of ctx has rolled the transaction back.
func (j *journal) Abandoned() { j.release() }

// release frees the locks in memory of a transaction that is over for good.
func (j *journal) release() {
	j.Mu.Lock()
	pretended := j.past.pretended
	j.past.pretended, j.gone = nil, true
	for i := range j.past.savepoints {
		j.past.savepoints[i].pretended = 0
	}
	j.Mu.Unlock()
	freeAll(pretended)
}

// takenSince removes the locks taken since a savepoint, and returns them.
func (p *past) takenSince(name string) []func() {
	newest, _ := p.find(name)
	if newest < 0 {
		return nil
	}
	from := p.savepoints[newest].pretended
	taken := slices.Clone(p.pretended[from:])
	clear(p.pretended[from:])
	p.pretended = p.pretended[:from]
	return taken
}

func freeAll(pretended []func()) {
	for _, free := range pretended {
		free()
	}
}
