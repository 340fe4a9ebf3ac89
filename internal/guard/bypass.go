package guard

import (
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// isBypassed reports whether an update or delete was executed with a text without the guards: another plugin, a callback, or a clause with its own
// builder has written it.
func (w *Write) isBypassed(db *gorm.DB) bool {
	if db.RowsAffected == 0 || db.DryRun {
		return false
	}
	compares := w.version.checked && !w.built.unchecked || w.unchanged().guards() || w.fence.guards() || w.guardsJob()
	moves := w.version.is() && !w.version.IsSystem() && !slices.Contains(db.Statement.BuildClauses, "DELETE")
	return compares && !w.built.holds || moves && !w.built.set
}

// isUpsertBypassed does the same for an upsert.
func (w *Write) isUpsertBypassed(db *gorm.DB) bool {
	guarded := w.version.is() && !w.version.IsSystem() || w.fence != nil
	return db.RowsAffected > 0 && w.upsert.updates && guarded && !w.built.conflicts
}

func (w *Write) refuseBypass(db *gorm.DB) {
	err := fmt.Errorf("gormlock: %s: another plugin, a callback or a clause with a builder of its own wrote the text of this statement, so nothing was compared: db.Use(gormlock.New()) after it, or do without its builder",
		statement.TableName(db.Statement))
	journal.Doom(db, err)
	w.refuse(db, err)
}
