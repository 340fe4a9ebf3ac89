package guard

import (
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

// A Write is a step of its transaction's journal. So is a struct that was given the version to which its row was moved.

// Held implements whereabouts.Holder.
func (w *Write) Held() *memory.Structs { return &w.memory }

// Regroup implements journal.Regrouper.
func (w *Write) Regroup(undone, all []journal.Step, lost bool) {
	whereabouts.Regroup(undone, all, lost)
}

// Stray implements journal.Straying.
func (w *Write) Stray() { w.memory.Stray() }

// recoverStrays restores what the statement is about to use, if ctx has ended the transaction that wrote it, and nobody else has
// restored it.
func (w *Write) recoverStrays() {
	for i := 0; i < w.memory.Count && memory.HasStrays(); i++ {
		memory.Recover(w.model, w.memory.Row(i))
	}
}

// adopted is a struct that was given the version to which its row was moved.
type adopted struct{ memory memory.Structs }

// Held implements whereabouts.Holder.
func (a *adopted) Held() *memory.Structs { return &a.memory }

// Regroup implements journal.Regrouper.
func (a *adopted) Regroup(undone, all []journal.Step, lost bool) {
	whereabouts.Regroup(undone, all, lost)
}

// Stray implements journal.Straying.
func (a *adopted) Stray() { a.memory.Stray() }

// Undo implements journal.Step, as does Lose.
func (a *adopted) Undo() { a.memory.Undo() }

// Lose puts back the version that the struct had, which is not newer.
func (a *adopted) Lose() { a.memory.Undo() }
