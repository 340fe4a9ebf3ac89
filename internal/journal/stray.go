package journal

// Straying is a Step with structs that nobody restores where ctx has ended the transaction and the program does not end it.
type Straying interface {
	// Stray is called from any goroutine. What it keeps is taken back by Undo or Lose, or by whoever uses the structs next.
	Stray(all *Astray)
	// Loosen is called from any goroutine when the transaction is forgotten: what Stray keeps must keep no struct alive from then on.
	Loosen()
}

// Astray is what is known of a transaction whose steps go astray, the oldest first.
type Astray struct {
	Of     *Ever
	Wrote  int64 // the moment of the first text that may have written something in what is taken back; 0: there is none
	Undone bool  // the step is taken back; otherwise it only tells of places: it was taken back before, or never is
	Known  any   // who keeps its structs keeps here what is known of them
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

// Stray implements sqltx.Watcher. The steps stay in the past: the goroutine of the transaction may still take them back.
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

// strayIfEnded does so as soon as ctx has ended, unless a commit is on its way, whose outcome decides.
func (j *journal) strayIfEnded() {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if !j.asked && j.opening.HasEnded() {
		j.stray(-1, true)
	}
}

// StrayEnded is called before structs are used. The context package ends a transaction on a goroutine of its own, and may be late.
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

// Forgotten implements sqltx.Watcher. What the transaction had in memory stays astray.
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
