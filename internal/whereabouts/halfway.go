package whereabouts

import (
	"slices"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// doomHalfway fails the commit of a caller's transaction in which Association(…).Append or Replace has stored the rows of maps, and gormlock has
// refused the next row, or the update of the owner.
func doomHalfway(db *gorm.DB) {
	stmt := db.Statement
	if db.DryRun || stmt.Schema == nil || statement.Transaction(stmt) == nil {
		return
	}
	row := statement.FromMap(stmt.Dest) && slices.Contains(stmt.BuildClauses, "VALUES") && statement.InAppend()
	if !row && (!journal.IsHalfway(stmt) || !savesOwner(db) || !statement.InAssociation()) {
		return
	}
	if journal.TakeHalfway(stmt) && db.Error != nil && fault.IsAdded(stmt) {
		journal.Doom(db, db.Error)
	}
	if row && db.Error == nil {
		journal.NoteHalfway(stmt)
	}
}
