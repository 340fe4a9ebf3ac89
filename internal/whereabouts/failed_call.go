package whereabouts

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// failedCalls are the errors of statements of Association(…).Append and Replace, by the call. With several owners GORM goes on to the next one,
// and returns only the last one's error.
var failedCalls struct {
	count  atomic.Int64
	errors sync.Map // weak.Pointer[string], of what the call selects → error
}

// noteFailedCall notes the first error of a call.
func noteFailedCall(db *gorm.DB) {
	stmt := db.Statement
	if db.Error == nil || db.DryRun || stmt.Schema == nil || savedRelation(stmt) == nil || !statement.InAssociation() {
		return
	}
	call := weak.Make(callOf(stmt))
	if _, known := failedCalls.errors.LoadOrStore(call, db.Error); !known {
		failedCalls.count.Add(1)
		runtime.AddCleanup(callOf(stmt), func(call weak.Pointer[string]) {
			failedCalls.errors.Delete(call)
			failedCalls.count.Add(-1)
		}, call)
	}
}

// refuseFailedCall fails the statement of the next owner, so that GORM returns an error.
func refuseFailedCall(db *gorm.DB) {
	stmt := db.Statement
	if failedCalls.count.Load() == 0 || db.Error != nil || db.DryRun || stmt.Schema == nil || savedRelation(stmt) == nil {
		return
	}
	if failed, is := failedCalls.errors.Load(weak.Make(callOf(stmt))); is {
		fault.Add(db, fmt.Errorf("gormlock: %s.%s: not executed, another owner of the same call was refused: %w", stmt.Schema.Name, stmt.Selects[0], failed.(error))) //nolint:forcetypeassert // nothing else is
	}
}
