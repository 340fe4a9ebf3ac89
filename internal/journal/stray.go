package journal

// Straying is a Step with structs that nobody restores where ctx has ended the transaction and the program does not end it.
type Straying interface {
	// Stray is called from any goroutine. What it keeps is taken back by Undo or Lose, or by whoever uses the structs next.
	Stray()
	// Loosen is called from any goroutine when the transaction is forgotten: what Stray keeps must keep no struct alive from then on.
	Loosen()
}

func stray(steps ...Step) {
	for _, step := range steps {
		if straying, is := step.(Straying); is {
			straying.Stray()
		}
	}
}

// Stray implements sqltx.Watcher. The steps stay in the past: the goroutine of the transaction may still take them back.
func (j *journal) Stray(all bool) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	from := 0
	if !all && !j.past.unsure {
		from = j.past.since(len(j.past.savepoints) - 1)
	}
	j.stray(from, all)
}

func (j *journal) stray(from int, all bool) {
	if !j.ended && !j.astray {
		j.astray = all
		stray(j.past.steps[from:]...)
	}
}

// strayIfEnded does so as soon as ctx has ended, unless a commit is on its way, whose outcome decides.
func (j *journal) strayIfEnded() {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if !j.asked && j.opening.HasEnded() {
		j.stray(0, true)
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
	j.past, j.naming.learned, j.naming.tables, j.ended = past{}, nil, nil, true
	j.Mu.Unlock()
	drawerOf(pool).put(pool, nil)
	defer Released(all.held)
	for _, step := range all.steps {
		if straying, is := step.(Straying); is {
			straying.Loosen()
		}
	}
}
