package journal

// Straying is a Step with structs that must be restored even if ctx has ended the transaction and the program never ends it.
type Straying interface {
	// Stray keeps how to restore the structs, for Undo, Lose, or the next use of the structs. It may be called from any goroutine.
	Stray(all *Astray)
	// Loosen is called when the transaction is forgotten: from then on nothing that Stray keeps may keep a struct alive. It may be called from
	// any goroutine.
	Loosen()
}

// Astray is what is known of a transaction when its steps go astray, the oldest first.
type Astray struct {
	Of     *Ever
	Wrote  int64 // the moment of the first undone text that may have written something; 0: there is none
	Undone bool  // the step is undone now; otherwise it was undone before or never is, and only shows where structs are
	Known  any   // for the package that keeps the structs
}

// strayStep takes one step astray.
func (j *journal) strayStep(step Step, undone bool) {
	if straying, is := step.(Straying); is {
		if j.strays == nil {
			j.strays = &Astray{Of: j.past.all(), Wrote: j.past.wrote}
		}
		if j.strays.Undone = undone; j.astray {
			j.strays.Wrote = j.past.wrote
		}
		straying.Stray(j.strays)
	}
}

// Stray implements sqltx.Watcher. The steps stay in the past, because the goroutine of the transaction may still undo them.
func (j *journal) Stray(all bool) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	savepoint := -1
	if !all && !j.past.unsure {
		savepoint = len(j.past.savepoints) - 1
	}
	j.stray(savepoint, all)
}

func (j *journal) stray(savepoint int, all bool) {
	if j.ended || j.astray {
		return
	}
	ever := j.past.all()
	j.astray, j.strays = all, &Astray{Of: ever, Wrote: j.past.firstWrite(savepoint)}
	undone := map[Straying]bool{}
	for _, step := range j.past.steps[j.past.since(savepoint):] {
		if straying, is := step.(Straying); is {
			undone[straying] = true
		}
	}
	ever.Since(0, 0, func(step Step) {
		straying, _ := step.(Straying)
		j.strayStep(step, undone[straying])
	})
}

// strayIfEnded lets all steps go astray if ctx has ended. If a commit is on its way, its outcome decides instead.
func (j *journal) strayIfEnded() {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if !j.asked && j.opening.HasEnded() {
		j.stray(-1, true)
	}
}

// StrayEnded is called before structs are used. database/sql notices the end of a context on another goroutine, and may be late.
func StrayEnded() {
	for i := range drawers {
		if drawers[i].mayEnd.Load() == 0 {
			continue
		}
		for _, j := range drawers[i].ended() {
			j.strayIfEnded()
		}
	}
}

// Forgotten implements sqltx.Watcher. The structs of the transaction stay astray.
func (j *journal) Forgotten() {
	j.Mu.Lock()
	pool, all := j.pool, j.past
	j.past, j.naming.learned, j.naming.tables, j.strays, j.ended = past{}, nil, nil, nil, true
	j.Mu.Unlock()
	drawerOf(pool).put(pool, nil)
	defer Released(all.held)
	all.all().Since(0, 0, func(step Step) {
		if straying, is := step.(Straying); is {
			straying.Loosen()
		}
	})
}
