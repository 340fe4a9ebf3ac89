package whereabouts

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// failedCalls are the errors of statements of Association(…).Append and Replace, by call. If there are several owners, GORM continues with the next
// owner, and returns only the last one's error.
var failedCalls struct {
	count  atomic.Int64
	errors sync.Map // each call has its own Config → its error
}

// noteFailedCall notes the first error of a call.
func noteFailedCall(db *gorm.DB) {
	if db.Error == nil || !savesOwner(db) || !statement.InAssociation() {
		return
	}
	call := weak.Make(db.Config)
	if _, known := failedCalls.errors.LoadOrStore(call, db.Error); !known {
		failedCalls.count.Add(1)
		runtime.AddCleanup(db.Config, func(call weak.Pointer[gorm.Config]) {
			failedCalls.errors.Delete(call)
			failedCalls.count.Add(-1)
		}, call)
	}
}

// refuseFailedCall fails the statement of the next owner, so that GORM returns an error.
func refuseFailedCall(db *gorm.DB) {
	if failedCalls.count.Load() == 0 || db.Error != nil || !savesOwner(db) {
		return
	}
	if failed, is := failedCalls.errors.Load(weak.Make(db.Config)); is {
		fault.Add(db, fmt.Errorf("gormlock: %s: not executed, another owner of the same call was refused: %w", db.Statement.Schema.Name, failed.(error))) //nolint:forcetypeassert // nothing else is
	}
}

// doomAppendedMap fails the commit of a transaction in which gormlock refused a row that Append would make of a map: GORM continues with the next
// map of a slice, and returns only the last one's error. After an error of the server itself the transaction stores nothing anyway. If the call has
// stored nothing before, and the later maps will be refused too, GORM returns the error, and the transaction goes on.
func doomAppendedMap(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil && !db.DryRun && stmt.Schema != nil && statement.FromMap(stmt.Dest) && sqlstate.Of(db.Error) == "" && model.NeedsJournal(db, stmt.Schema) && statement.InAppend() &&
		(journal.IsHalfway(stmt) || !journal.MapsOf(stmt.Context).NoteRefused(db.Error)) {
		journal.Doom(db, db.Error)
	}
}

// savesOwner reports whether a statement may save an owner in such a call. With FullSaveAssociations it selects nothing.
func savesOwner(db *gorm.DB) bool {
	stmt := db.Statement
	if db.DryRun || stmt.Schema == nil {
		return false
	}
	return db.FullSaveAssociations && len(stmt.Selects) == 0 || savedRelation(stmt) != nil
}
