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

// follows reports whether the structs can get what the server says it wrote.
func (d *draft) follows(stmt *gorm.Statement) bool {
	return len(d.rows) > 0 && (d.batch || d.rows[0].Struct.CanAddr()) && (returns(stmt) || d.readsBack(stmt))
}

// returns reports whether the statement can return what it writes.
func returns(stmt *gorm.Statement) bool {
	return slices.Contains(stmt.BuildClauses, "RETURNING") && (dialect.Of(stmt.DB).UpdateReturns() || !updates(stmt))
}

// updates reports whether the statement is an UPDATE, which includes a soft delete.
func updates(stmt *gorm.Statement) bool {
	switch {
	case slices.Contains(stmt.BuildClauses, "UPDATE"):
		return true
	case slices.Contains(stmt.BuildClauses, "DELETE"):
		return !stmt.Unscoped && stmt.Schema != nil && len(stmt.Schema.DeleteClauses) > 0
	}
	return false
}

// wantAssigned makes an update or delete return what the structs do not hold afterwards: the whole row for a struct that is not at its row's
// version, otherwise only what the server computed.
func (d *draft) wantAssigned(stmt *gorm.Statement) {
	asked := d.asks(stmt)
	if d.isPlain() && !asked || !d.follows(stmt) {
		return
	}
	v := &d.version
	if d.batch && (v.is() || d.fence.guards()) {
		d.want(d.model.Schema.PrimaryFields...)
	}
	if d.intent.Merges() {
		d.wantWhole(stmt)
	}
	if (d.op != OpDelete || v.given && updates(stmt)) && v.is() && v.checked && !d.mirrored() {
		d.wantWhole(stmt)
	}
	ours := v.is() && !v.IsInteger() && !d.intent.Ignores() && (d.batch || d.op != OpDelete)
	if ours || d.batch && v.checked && statement.AsksForRows(stmt) || asked {
		d.want(v.Field)
	}
	if d.intent.Touches() {
		if d.intent.Ignores() {
			d.want(v.Field)
		}
		for _, field := range stmt.Schema.Fields {
			if field.AutoUpdateTime > 0 && field.DBName != "" {
				d.want(field)
			}
		}
	}
	if d.batch && d.returning.wanted() {
		d.want(d.model.Schema.PrimaryFields...)
	}
	d.watchKey()
}

// isPlain reports that the statement writes one struct, which afterwards holds the assigned values and a version that it can count. Then nothing
// must be returned.
func (d *draft) isPlain() bool {
	return !d.batch && d.intent == nil && (!d.version.is() || d.version.IsInteger() && d.mirrored()) && !d.model.IsRoot()
}

// mirrored reports whether each struct equals its row before the write.
func (d *draft) mirrored() bool {
	for i := range d.rows {
		if !d.rows[i].mirrors(&d.version, true) {
			return false
		}
	}
	return true
}

// watchKey asks how the server spells the key of a root, because the parts hold the server's spelling.
func (d *draft) watchKey() {
	if !d.model.IsRoot() {
		return
	}
	for _, field := range d.model.Schema.PrimaryFields {
		if field.DataType != schema.Int && field.DataType != schema.Uint && field.Readable {
			if d.returning == nil {
				d.returning = &returning{}
			}
			d.returning.watched = append(d.returning.watched, d.model.Schema.PrimaryFields...)
			return
		}
	}
}

// wantUnheld asks for the columns that are SET to values which the struct does not hold: expressions, which the server computes; values that GORM
// reads differently from the server; assignments of the caller's own SET; and what a soft delete assigns to another struct than the one with the
// key. A struct cannot hold a column that it may not read.
func (d *draft) wantUnheld(stmt *gorm.Statement, set clause.Set) {
	if !d.version.is() && d.fence == nil || len(d.rows) == 0 || !d.where.ownSet && !d.where.ofModel && statement.SamePointer(stmt.Model, stmt.Dest) {
		return
	}
	d.wantFields(stmt, d.unheld(stmt, set))
}

// unheld are the columns of a SET that the structs do not hold.
func (d *draft) unheld(stmt *gorm.Statement, set clause.Set) []*schema.Field {
	var fields []*schema.Field
	for i := range set {
		field := d.model.Schema.LookUpField(set[i].Column.Name)
		if field == nil || field.DBName == "" || owned(d.guards(), set[i].Column.Name) || d.holds(stmt, field, set[i].Value) {
			continue
		}
		d.built.rekeys = d.built.rekeys || field.PrimaryKey
		if field.Readable {
			fields = append(fields, field)
		} else {
			d.built.unheld = true
		}
	}
	return fields
}

// holds reports whether every struct holds what is sent for a column.
func (d *draft) holds(stmt *gorm.Statement, field *schema.Field, value any) bool {
	if d.where.ownSet || d.where.ofModel {
		return false
	}
	if statement.FromMap(stmt.Dest) && statement.Computed(value) {
		return false
	}
	for i := range d.rows {
		if !statement.Holds(stmt.Context, field, d.rows[i].Struct, value) {
			return false
		}
	}
	return true
}

// wantLinks asks for foreign keys that the statement does not write, but that GORM has set in the structs after it saved a belongs-to.
func (d *draft) wantLinks(stmt *gorm.Statement, set clause.Set) {
	if !d.version.is() {
		return
	}
	var fields []*schema.Field
	for _, relation := range d.model.Schema.Relationships.BelongsTo {
		for _, ref := range relation.References {
			written := func(a clause.Assignment) bool { return a.Column.Name == ref.ForeignKey.DBName }
			if ref.OwnPrimaryKey || ref.ForeignKey.DBName == "" || !ref.ForeignKey.Readable || slices.ContainsFunc(set, written) {
				continue
			}
			for i := range d.rows {
				if d.memory.Differs(i, ref.ForeignKey) {
					fields = append(fields, ref.ForeignKey)
					break
				}
			}
		}
	}
	d.wantFields(stmt, fields)
}

// wantFields asks for columns while the statement is built.
func (d *draft) wantFields(stmt *gorm.Statement, fields []*schema.Field) {
	if len(fields) == 0 {
		return
	}
	if !d.follows(stmt) {
		d.built.unheld = true
		return
	}
	d.want(fields...)
	if d.batch {
		d.want(d.model.Schema.PrimaryFields...)
	}
	d.returning.install(d, stmt)
}

// wantRows asks an upsert for the whole rows that it wrote, so that each struct equals its row, whatever was updated. If the upsert only sets the
// foreign key of children, it only asks for what identifies them, because the rest is neither written nor read.
func (d *draft) wantRows(stmt *gorm.Statement) {
	u := d.upsert
	if len(d.rows) == 0 || !returns(stmt) && !dialect.Of(stmt.DB).IsMySQL() {
		return
	}
	if !u.child || u.updates && !u.links || u.skips && dialect.Of(stmt.DB).IsMySQL() {
		d.wantWhole(stmt)
		return
	}
	for _, field := range stmt.Schema.FieldsWithDefaultDBValue {
		if field.Readable && !statement.AsksForRows(stmt) {
			d.want(field)
		}
	}
	d.want(d.model.Schema.PrimaryFields...)
	if !u.skips {
		d.want(d.version.Field)
	}
	d.watchLinks(stmt)
	if slices.ContainsFunc(u.rows, func(r upsertRow) bool { return r.unsure }) {
		d.returning.watched = append(d.returning.watched, readable(stmt, d.model)...)
	}
	if u.skips && len(d.rows) > 1 && slices.ContainsFunc(d.rows, func(row Row) bool { return row.Key == nil }) {
		d.want(readable(stmt, d.model)...) // rows find structs without a key by their content, because some may be left out
	}
}

// lacksGenerated reports whether the struct has no value for a part of its key that the server makes.
func lacksGenerated(s *schema.Schema, row reflect.Value) bool {
	return slices.ContainsFunc(s.PrimaryFields, func(field *schema.Field) bool {
		place := statement.Place(field, row)
		return !place.IsValid() || place.IsZero() && (field.HasDefaultValue || field.AutoIncrement || len(s.PrimaryFields) == 1)
	})
}

// want asks for columns.
func (d *draft) want(fields ...*schema.Field) {
	if d.returning == nil {
		d.returning = &returning{}
	}
	r := d.returning
	for _, field := range fields {
		if !slices.Contains(r.fields, field) {
			r.fields = append(r.fields, field)
		}
	}
}

// wantWhole asks for whole rows, so that the structs equal their rows afterwards.
func (d *draft) wantWhole(stmt *gorm.Statement) {
	if d.returning == nil || !d.returning.whole {
		d.want(readable(stmt, d.model)...)
		d.returning.whole = true
	}
}

// readsBack reports whether the written rows can be read again after the statement, because they are locked until its transaction ends.
func (d *draft) readsBack(stmt *gorm.Statement) bool {
	return !dialect.Of(stmt.DB).UpdateReturns() && updates(stmt) && statement.Transaction(stmt) != nil
}
