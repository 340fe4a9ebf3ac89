package journal

import (
	"strconv"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/sqltx"
)

// Executed makes memory follow what a text did to the transaction.
func (j *journal) Executed(text sqltext.Text, answer sqltx.Answer) {
	j.Mu.Lock()
	if j.asked = false; text.Writes {
		j.past.write()
	}
	j.Mu.Unlock()
	if answer.Stored {
		j.Stored()
		if len(text.Commands) > 0 {
			defer j.Stored() // counted again at the end: the text may go back to a savepoint, which resets the count
		}
	}
	if text.Renames {
		j.turn(text)
		defer j.turn(text) // again at the end: the text may set or go back to a savepoint
	}
	if text.Unsure {
		j.lose(answer.After)
		return
	}
	aborted := answer.Before == sqltx.Aborted
	for i, command := range text.Commands {
		last := i == len(text.Commands)-1 && command.Last
		switch {
		case answer.Failed && last:
			j.refused(command)
		case answer.Failed:
			j.maybe(command)
		default:
			j.did(command, answer.Before, aborted)
			aborted = aborted && command.Verb < sqltext.Savepoint
		}
	}
	switch over := j.IsOver(); {
	case answer.After == sqltx.Unknown:
	case (answer.After == sqltx.Idle) != over:
		if !over && text.RollsBack(answer.Failed) {
			j.rolledBack()
		}
		j.lose(answer.After)
	case answer.Failed && (answer.After == sqltx.Aborted || answer.After == sqltx.Gone):
		j.aborted(answer, answer.Ours && len(text.Commands) > 0 && text.Commands[0].Verb == sqltext.Savepoint)
	}
}

// aborted is called when the server has undone everything since the last savepoint, or everything, and freed its locks: the program can only
// roll back now. The structs follow at once, because the program may use them elsewhere before it rolls back. certain says that the server has
// the last savepoint: the text that failed is gormlock's and began with that savepoint.
func (j *journal) aborted(answer sqltx.Answer, certain bool) {
	j.Mu.Lock()
	var undone, lost taken
	if answer.After == sqltx.Gone {
		undone = taken{j.past.remove(0), j.past.wrote}
	} else {
		undone, lost = j.past.abort(certain)
	}
	if len(undone.steps)+len(lost.steps) > 0 {
		all := j.past.all()
		j.atWork.undo = append(j.atWork.undo, func() {
			defer lose(lost, all)
			undo(undone, all)
		})
	}
	atWork := j.atWork.count > 0
	j.Mu.Unlock()
	if !atWork {
		j.catchUp()
	}
}

// Refused implements sqltx.Watcher: everything is undone.
func (j *journal) Refused() { j.aborted(sqltx.Answer{After: sqltx.Gone}, false) }

// Follow is called at the end of a statement that does not call Leave.
func Follow(db *gorm.DB) {
	if j := Of(db.Statement); j != nil {
		j.opening.Follow()
	}
}

// AtWork is called at the beginning of each statement that may restore its structs after a failure, and Leave at its end. If the server undoes
// something in between, memory follows after Leave.
func AtWork(db *gorm.DB) {
	if j := Of(db.Statement); j != nil {
		j.begun()
	}
}

func (j *journal) begun() {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if j.atWork.count == 0 {
		j.atWork.began = Moment()
	}
	j.atWork.count++
}

// Began is the moment when the outermost running statement began; 0: no statement runs.
func (j *journal) Began() int64 {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if j.atWork.count == 0 {
		return 0
	}
	return j.atWork.began
}

func (j *journal) settled() {
	j.opening.Follow()
	j.Mu.Lock()
	j.atWork.count = max(0, j.atWork.count-1)
	atWork := j.atWork.count > 0
	j.Mu.Unlock()
	if !atWork {
		j.catchUp()
	}
}

// catchUp undoes in memory what the server has undone.
func (j *journal) catchUp() {
	j.Mu.Lock()
	all := j.atWork.undo
	j.atWork.undo = nil
	j.Mu.Unlock()
	for _, undo := range all {
		defer undo() //nolint:revive // at the end of the function is when, and all of them even if one panics
	}
}

// turn notes that names of tables may stand for other tables from now on.
func (j *journal) turn(text sqltext.Text) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if text.Remakes {
		j.naming.remade++
	}
	if text.Roams && j.plugin != nil && j.database != nil { // a later transaction on this connection finds the new search_path too
		j.plugin.Learned.Roam(j.database)
	}
	j.naming.paths++
	j.past.path = j.naming.paths
	j.past.names.set(text, strconv.Itoa(j.naming.paths))
}

// IsOver reports whether a text has ended the transaction, and no other was begun.
func (j *journal) IsOver() bool {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	return j.over
}

// lose is called after a text that leaves the state of the transaction unknown.
func (j *journal) lose(now sqltx.Status) {
	j.Mu.Lock()
	pretended := j.past.pretended
	j.past.pretended = nil
	j.Mu.Unlock()
	defer func() {
		j.Mu.Lock()
		defer j.Mu.Unlock()
		j.past.unsure = true
		j.past.pretended = pretended // held until it is certain that they are free
	}()
	j.restart(now == sqltx.Idle)
	j.end(lose)
}

// did is called after the server has executed a command.
func (j *journal) did(command sqltext.Command, before sqltx.Status, aborted bool) {
	switch command.Verb {
	case sqltext.Begin:
		j.restart(false)
	case sqltext.Commit, sqltext.Detach:
		with := lose // the commit of an aborted transaction rolls it back, and a two-phase commit ends elsewhere
		switch {
		case aborted:
			with = undo
			j.rolledBack()
		case before != sqltx.Unknown && command.Verb == sqltext.Commit:
			with = keepAll
		}
		j.restart(!command.Chain)
		j.end(with)
	case sqltext.Rollback:
		j.rolledBack()
		j.restart(!command.Chain)
		j.end(undo)
	case sqltext.Savepoint:
		j.Savepoint(command.Name)
	case sqltext.Release:
		j.Mu.Lock()
		j.past.release(command.Name, false)
		j.Mu.Unlock()
	case sqltext.RollbackTo:
		j.rollBackTo(command.Name)
	}
}

// rolledBack notes that the earlier writes of the transaction are gone, so that a later commit must not succeed.
func (j *journal) rolledBack() {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.undone = j.past.written > 0
}

func (j *journal) restart(over bool) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.over, j.undone = over, over && j.undone
}

// maybe is called after a text has failed, for a command that the server may or may not have executed.
func (j *journal) maybe(command sqltext.Command) {
	j.Mu.Lock()
	var lost taken
	all := j.past.all()
	switch command.Verb {
	case sqltext.Savepoint:
		j.past.set(command.Name, true)
	case sqltext.Release:
		j.past.release(command.Name, true)
	case sqltext.RollbackTo:
		lost = j.past.mayRollBackTo(command.Name)
	case sqltext.Begin:
	case sqltext.Commit, sqltext.Rollback, sqltext.Detach:
		j.past.unsure = true
		lost = taken{j.past.steps, j.past.wrote}
		j.past.steps = nil
	}
	j.Mu.Unlock()
	lose(lost, all)
}

// refused is called for the last command of a text that failed: it was not executed. Only a failed commit has an effect: it ends the
// transaction.
func (j *journal) refused(command sqltext.Command) {
	if command.Verb == sqltext.Commit || command.Verb == sqltext.Detach {
		j.maybe(command)
	}
}

// Savepoint tells the journal of a savepoint that was set without its knowledge. So do the methods below for other commands.
func (j *journal) Savepoint(name string) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.past.set(name, false)
}

// RollbackTo does nothing if no such savepoint is known.
func (j *journal) RollbackTo(name string) {
	if j.Last(name) >= 0 {
		j.rollBackTo(name)
	}
}

func (j *journal) rollBackTo(name string) {
	j.catchUp()
	j.Mu.Lock()
	pretended := j.past.takenSince(name)
	undone, lost, freed := j.past.rollBackTo(name)
	all := j.past.all()
	j.Mu.Unlock()
	defer Released(freed)
	defer freeAll(pretended)
	defer lose(lost, all)
	undo(undone, all)
}

// Release does nothing if no such savepoint is known.
func (j *journal) Release(name string) {
	if j.Last(name) < 0 {
		return
	}
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.past.release(name, false)
}

// Last is the number of the newest savepoint of this name, negative if there is none.
func (j *journal) Last(name string) int {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	newest, _ := j.past.find(name)
	return newest
}
