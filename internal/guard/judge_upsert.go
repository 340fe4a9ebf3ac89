package guard

import (
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/statement"
)

// whyUnlinked returns the error of rows of a join table that were not stored because they exist and are soft-deleted: the rows that they link would
// stay unlinked.
func (j *judge) whyUnlinked(db *gorm.DB, from []reflect.Value) error {
	var keys [][]any
	for i := range j.rows {
		if !from[i].IsValid() && j.rows[i].Key != nil {
			keys = append(keys, j.rows[i].Key)
		}
	}
	if len(keys) == 0 || len(j.model.Schema.QueryClauses) == 0 || !statement.InLinking() {
		return nil
	}
	found, err := j.look(db, keys)
	if err != nil {
		return err
	}
	for i, row := range found {
		if row.deleted {
			return fmt.Errorf("gormlock: %s was deleted softly, so GORM does not link anew what it linked: restore the row with Unscoped, or delete it for good",
				j.rowName(db.Statement, keys[i]))
		}
	}
	return nil
}

// whyUpsertFailed returns which of the structs' rows were refused.
func (j *judge) whyUpsertFailed(db *gorm.DB) error {
	if j.upsert == nil || !j.version.is() {
		return nil
	}
	var known []*Row
	for i, r := range j.upsert.rows {
		if r.loaded || r.unread {
			known = append(known, &j.rows[i])
		}
	}
	if len(known) == 0 {
		return nil
	}
	return j.whyRowsFailed(db, known)
}

func (j *judge) whyRowsFailed(db *gorm.DB, known []*Row) error {
	keys := make([][]any, len(known))
	for i, row := range known {
		keys[i] = row.Key
	}
	found, err := j.look(db, keys)
	if err != nil {
		return errors.Join(j.staleError(db.Statement, known[0]).Err(), err)
	}
	var all []error
	for i, row := range known {
		if !found[i].IsValid() || j.version.accepts(row, j.version.Read(found[i].Value)) {
			continue // it would have been inserted or updated
		}
		if !j.version.Loaded(row.Expected) {
			all = append(all, j.missing(db.Statement, row.Key, j.version.Any(j.version.Read(found[i].Value))))
			continue
		}
		all = append(all, j.stale(db.Statement, row, j.version.Any(j.version.Read(found[i].Value)), false).Err())
	}
	return joined(all)
}
