package guard

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

// A Write is a step of its transaction's journal. So is a struct that was given its row's new version.

// Held implements whereabouts.Holder.
func (w *Write) Held() *memory.Structs { return &w.memory }

// Regroup implements journal.Regrouper.
func (w *Write) Regroup(undone []journal.Step, all *journal.Ever, lost bool) {
	whereabouts.Regroup(undone, all, lost)
}

// Stray implements journal.Straying.
func (w *Write) Stray(all *journal.Astray) { w.memory.Stray(all) }

// Loosen implements journal.Straying.
func (w *Write) Loosen() { w.memory.Loosen() }

// keepTried notes where the structs of a statement are that is not in the journal: it has failed, or written nothing. It may be refused before it
// is a Write.
func (w *Write) keepTried(db *gorm.DB) {
	stmt := db.Statement
	switch {
	case w != nil && w.outcome.kept:
	case w != nil && w.memory.Count > 0:
		whereabouts.KeepTried(stmt, &w.memory)
	case db.Error != nil:
		if m := model.Of(db); m != nil {
			whereabouts.KeepTriedIn(stmt, m, stmt.Model)
			whereabouts.KeepTriedIn(stmt, m, stmt.Dest)
		}
	}
}

// adopted is a struct that was given its row's new version.
type adopted struct{ memory memory.Structs }

// Held implements whereabouts.Holder.
func (a *adopted) Held() *memory.Structs { return &a.memory }

// Regroup implements journal.Regrouper.
func (a *adopted) Regroup(undone []journal.Step, all *journal.Ever, lost bool) {
	whereabouts.Regroup(undone, all, lost)
}

// Stray implements journal.Straying.
func (a *adopted) Stray(all *journal.Astray) { a.memory.Stray(all) }

// Loosen implements journal.Straying.
func (a *adopted) Loosen() { a.memory.Loosen() }

// Undo implements journal.Step, as does Lose.
func (a *adopted) Undo() { a.memory.Undo() }

// Lose restores the version that the struct had, which is not newer.
func (a *adopted) Lose() { a.memory.Undo() }
