package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// follows reports whether memory can hold what the server says it wrote.
func (w *Write) follows(stmt *gorm.Statement) bool {
	return len(w.rows) > 0 && (w.batch || w.rows[0].Struct.CanAddr()) && (returns(stmt) || w.readsBack(stmt))
}

// returns reports whether the statement can return what it writes.
func returns(stmt *gorm.Statement) bool {
	return slices.Contains(stmt.BuildClauses, "RETURNING") && (dialect.Of(stmt.DB).UpdateReturns() || !updates(stmt))
}

// updates reports whether the statement is an UPDATE, as a soft delete is.
func updates(stmt *gorm.Statement) bool {
	switch {
	case slices.Contains(stmt.BuildClauses, "UPDATE"):
		return true
	case slices.Contains(stmt.BuildClauses, "DELETE"):
		return !stmt.Unscoped && stmt.Schema != nil && len(stmt.Schema.DeleteClauses) > 0
	}
	return false
}

// wantAssigned makes an update or delete return what the structs do not hold afterwards: the whole row for a struct
// that is not at its row's version, otherwise only what the server computed.
func (w *Write) wantAssigned(stmt *gorm.Statement) {
	if w.isPlain() || !w.follows(stmt) {
		return
	}
	v := &w.version
	if w.batch && (v.is() || w.fence.guards()) {
		w.want(w.model.Schema.PrimaryFields...)
	}
	if w.batch && w.op != OpDelete && !stmt.ReflectValue.CanAddr() {
		// GORM assigns nothing to the elements of a slice that is not addressable, not even through their pointers.
		w.wantWhole()
	}
	if w.intent.Merges() {
		w.wantWhole()
	}
	if w.op != OpDelete && v.is() && v.checked && !w.mirrored() {
		w.wantWhole()
	}
	ours := v.is() && !v.IsInteger() && !w.intent.ignores() && (w.batch || w.op != OpDelete)
	if ours || w.batch && v.checked && statement.AsksForRows(stmt) {
		w.want(v.Field)
	}
	if w.intent.touches() {
		if w.intent.ignores() {
			w.want(v.Field)
		}
		for _, field := range stmt.Schema.Fields {
			if field.AutoUpdateTime > 0 && field.DBName != "" {
				w.want(field)
			}
		}
	}
	if w.batch && w.returning.wanted() {
		w.want(w.model.Schema.PrimaryFields...)
	}
	w.watchKey()
}

// isPlain reports that the statement writes one struct, which afterwards holds what is assigned and a version that it can
// count: nothing has to be returned.
func (w *Write) isPlain() bool {
	return !w.batch && w.intent == nil && (!w.version.is() || w.version.IsInteger() && w.mirrored()) && !w.model.IsRoot()
}

// mirrored reports whether each struct equals its row before the write.
func (w *Write) mirrored() bool {
	for i := range w.rows {
		if !w.rows[i].mirrors(&w.version, true) {
			return false
		}
	}
	return true
}

// watchKey asks how the server spells the key of a root, because the parts hold the server's spelling.
func (w *Write) watchKey() {
	if !w.model.IsRoot() {
		return
	}
	for _, field := range w.model.Schema.PrimaryFields {
		if field.DataType != schema.Int && field.DataType != schema.Uint && field.Readable {
			if w.returning == nil {
				w.returning = &returning{}
			}
			w.returning.watched = append(w.returning.watched, w.model.Schema.PrimaryFields...)
			return
		}
	}
}

// wantUnheld asks for the columns that are SET to values which the struct does not hold: expressions, which the server
// computes; what the caller's own SET assigns; and what a soft delete assigns to another struct than the one with the
// key.
func (w *Write) wantUnheld(stmt *gorm.Statement, set clause.Set) {
	if !w.version.is() && w.fence == nil || len(w.rows) == 0 || !w.where.ownSet && !w.where.ofModel && !statement.FromMap(stmt.Dest) {
		return
	}
	w.wantFields(stmt, w.unheld(set))
}

// unheld are the columns of a SET that the struct does not hold.
func (w *Write) unheld(set clause.Set) []*schema.Field {
	var fields []*schema.Field
	for i := range set {
		if !w.where.ownSet && !w.where.ofModel && !statement.Computed(set[i].Value) || owned(w.guards(), set[i].Column.Name) {
			continue
		}
		if field := w.model.Schema.LookUpField(set[i].Column.Name); field != nil && field.DBName != "" && field.Readable {
			fields = append(fields, field)
		}
	}
	return fields
}

// wantLinks asks for foreign keys that the statement does not write, but that GORM has set in memory after saving a
// belongs-to.
func (w *Write) wantLinks(stmt *gorm.Statement, set clause.Set) {
	if !w.version.is() {
		return
	}
	var fields []*schema.Field
	for _, relation := range w.model.Schema.Relationships.BelongsTo {
		for _, ref := range relation.References {
			written := func(a clause.Assignment) bool { return a.Column.Name == ref.ForeignKey.DBName }
			if ref.OwnPrimaryKey || ref.ForeignKey.DBName == "" || !ref.ForeignKey.Readable || slices.ContainsFunc(set, written) {
				continue
			}
			for i := range w.rows {
				if w.memory.Differs(i, ref.ForeignKey) {
					fields = append(fields, ref.ForeignKey)
					break
				}
			}
		}
	}
	w.wantFields(stmt, fields)
}

// wantFields asks for columns while the statement is built.
func (w *Write) wantFields(stmt *gorm.Statement, fields []*schema.Field) {
	if len(fields) == 0 {
		return
	}
	if !w.follows(stmt) {
		w.built.unheld = true
		return
	}
	w.want(fields...)
	if w.batch {
		w.want(w.model.Schema.PrimaryFields...)
	}
	w.returning.install(w, stmt)
}

// wantStored asks a plain INSERT for values that the server stores differently, such as a time at the precision of its
// column, and for xmin. It also asks for the defaults that GORM does not ask for if the caller names other columns.
func (w *Write) wantStored(stmt *gorm.Statement) {
	v := &w.version
	asked, byUser := stmt.Clauses["RETURNING"]
	if w.memory.Count == 0 || w.intent.ignores() || !returns(stmt) || v.IsInteger() && !byUser {
		return
	}
	given, _ := asked.Expression.(clause.Returning)
	columns := slices.Clone(given.Columns)
	all := byUser && len(columns) == 0
	if all && v.IsInteger() {
		return
	}
	fields := stmt.Schema.FieldsWithDefaultDBValue
	if all {
		fields = stmt.Schema.Fields
	}
	for _, field := range fields {
		if field.DBName != "" && field.Readable && field != v.Field && !slices.ContainsFunc(columns, func(c clause.Column) bool { return c.Name == field.DBName || c.Name == field.Name }) {
			columns = append(columns, clause.Column{Name: field.DBName})
		}
	}
	if !v.IsInteger() {
		columns = append(columns, clause.Column{Name: v.Field.DBName})
	}
	w.returning = &returning{had: asked, hadAny: byUser, installed: true, byPosition: true}
	stmt.Clauses["RETURNING"] = clause.Clause{Name: "RETURNING", Expression: clause.Returning{Columns: columns}}
}

// wantRows asks an upsert for the whole rows that it wrote, so each struct equals its row, whatever was updated. If the
// upsert sets only the foreign key of children, it asks only for what identifies them: the rest is neither written nor read.
func (w *Write) wantRows(stmt *gorm.Statement) {
	u := w.upsert
	if len(w.rows) == 0 || !returns(stmt) && !dialect.Of(stmt.DB).IsMySQL() {
		return
	}
	if !u.child || u.updates && !u.links || u.skips && dialect.Of(stmt.DB).IsMySQL() {
		w.wantWhole()
		return
	}
	for _, field := range stmt.Schema.FieldsWithDefaultDBValue {
		if field.Readable && !statement.AsksForRows(stmt) {
			w.want(field)
		}
	}
	w.want(w.model.Schema.PrimaryFields...)
	if !u.skips {
		w.want(w.version.Field)
	}
}

// lacksGenerated reports whether the struct has no value for a part of its key that the server makes.
func lacksGenerated(s *schema.Schema, row reflect.Value) bool {
	return slices.ContainsFunc(s.PrimaryFields, func(field *schema.Field) bool {
		place := statement.Place(field, row)
		return !place.IsValid() || place.IsZero() && (field.HasDefaultValue || field.AutoIncrement || len(s.PrimaryFields) == 1)
	})
}
