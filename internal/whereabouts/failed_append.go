package whereabouts

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// failedAppends are new structs that Association(…).Append has put into slices of structs before a statement failed, by the addresses of the
// slices. GORM leaves them there. A program that appends again, as programs do after ErrStale, would store such a struct twice.
var failedAppends struct {
	count atomic.Int64
	mu    sync.Mutex
	at    map[uintptr]failedAppend
}

// failedAppend is the last element of such a slice: a new struct.
type failedAppend struct {
	len  int
	last any
}

// mostFailed is how many are kept.
const mostFailed = 1000

// noteFailedAppend notes what a failed statement has left in the structs.
func noteFailedAppend(db *gorm.DB) {
	stmt := db.Statement
	if db.Error == nil || db.DryRun || stmt.Schema == nil || savedRelation(stmt) == nil && !stmt.FullSaveAssociations || !statement.InAssociation() {
		return
	}
	eachCopied(stmt, func(relation *schema.Relationship, place reflect.Value) {
		if place.Kind() != reflect.Slice || place.Len() == 0 {
			return
		}
		last := place.Index(place.Len() - 1)
		if m := model.OfSchema(db, relation.FieldSchema); m.Column != nil && !m.Column.Unset(m.Column.Read(last)) {
			return // GORM leaves out a row that comes twice
		}
		failedAppends.mu.Lock()
		defer failedAppends.mu.Unlock()
		if failedAppends.at == nil || len(failedAppends.at) >= mostFailed {
			failedAppends.at = map[uintptr]failedAppend{}
		}
		failedAppends.at[place.Addr().Pointer()] = failedAppend{place.Len(), last.Interface()}
		failedAppends.count.Store(int64(len(failedAppends.at)))
	})
}

// refuseFailedAppend refuses an Append to a slice that still holds what an earlier Append has put there and has not stored.
func refuseFailedAppend(db *gorm.DB) {
	stmt := db.Statement
	if failedAppends.count.Load() == 0 || db.Error != nil || db.DryRun || stmt.Schema == nil || !statement.InAssociation() {
		return
	}
	eachCopied(stmt, func(relation *schema.Relationship, place reflect.Value) {
		if place.Kind() == reflect.Slice && takeFailedAppend(place).isIn(stmt, relation.FieldSchema, place) {
			fault.Add(db, fmt.Errorf("gormlock: nothing was executed: %s.%s still holds what an Append put there that failed, so it would be stored twice: "+
				"read into a new struct before you append again", stmt.Schema.Name, relation.Name))
		}
	})
}

// takeFailedAppend returns what a failed Append has left in a slice, and forgets it.
func takeFailedAppend(place reflect.Value) failedAppend {
	failedAppends.mu.Lock()
	defer failedAppends.mu.Unlock()
	at := place.Addr().Pointer()
	failed := failedAppends.at[at]
	delete(failedAppends.at, at)
	failedAppends.count.Store(int64(len(failedAppends.at)))
	return failed
}

// isIn reports whether the struct is still in its place, followed by other new structs.
func (f failedAppend) isIn(stmt *gorm.Statement, s *schema.Schema, place reflect.Value) bool {
	if f.len == 0 || place.Len() <= f.len || !reflect.DeepEqual(place.Index(f.len-1).Interface(), f.last) {
		return false
	}
	key, _ := statement.KeyOf(stmt, s, place.Index(f.len-1))
	for i := f.len; i < place.Len() && key != nil; i++ {
		if again, _ := statement.KeyOf(stmt, s, place.Index(i)); again != nil && statement.KeyName(again) == statement.KeyName(key) {
			return false // GORM leaves it out
		}
	}
	return true
}
