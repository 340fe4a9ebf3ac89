package guard

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// An upsert by key finds no row for a struct without a key. But after an import or a restore, the database may generate keys that rows already
// have. Then the upsert would find a row that nobody named.

// insertNew lets structs without a key only be inserted. If no struct has a key, the statement becomes a plain INSERT, which fails on the key as
// the INSERT of one struct does. If it is not known by what the upsert finds rows, it gets a condition on their keys.
func (d *draft) insertNew(stmt *gorm.Statement) {
	u := d.upsert
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	onKey := d.isOnKey(conflict) && (conflict.UpdateAll || len(conflict.Columns) > 0 || conflict.OnConstraint != "")
	unclear := !onKey && !conflict.DoNothing && d.isUnclear(conflict)
	if !onKey && !unclear || !u.saves && !u.child && dialect.Of(stmt.DB).FindsByAnyIndex() {
		return
	}
	var keyed [][]any
	keyless := 0
	count := func(key []any, whole bool) {
		if whole {
			keyed = append(keyed, key)
		} else {
			keyless++
		}
	}
	for _, values := range statement.MapsIn(stmt.Dest) {
		count(d.keyOfMap(values))
	}
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if row.Type() == d.model.Schema.ModelType {
			count(valuesIn(stmt, d.model.Schema.PrimaryFields, row), !d.awaitsKey(row))
		}
	})
	switch {
	case keyless > 0 && unclear:
		u.keyed, u.unclear = keyed, true
	case keyless > 0 && len(keyed) == 0:
		had := stmt.Clauses["ON CONFLICT"]
		u.had = &had
		delete(stmt.Clauses, "ON CONFLICT")
	case keyless > 0:
		u.keyed = keyed
	}
}

// awaitsKey reports whether the database must generate a part of the struct's key. In parts that it does not generate, a zero is a key.
func (p *plan) awaitsKey(row reflect.Value) bool {
	return slices.ContainsFunc(p.model.Schema.PrimaryFields, func(field *schema.Field) bool {
		place := statement.Place(field, row)
		return !place.IsValid() || place.IsZero() && (field.HasDefaultValue || field.AutoIncrement)
	})
}

// keyOfMap is the key that a map names. whole is false if the database must generate a part of it.
func (p *plan) keyOfMap(values map[string]any) (key []any, whole bool) {
	for _, field := range p.model.Schema.PrimaryFields {
		value, named := statement.Named(values, field)
		if !named && (field.HasDefaultValue || field.AutoIncrement) {
			return nil, false
		}
		key = append(key, value)
	}
	return key, true
}

// restore restores the clause that insertNew removed, because the caller may use the statement for another create.
func (u *upsert) restore(stmt *gorm.Statement) {
	if u != nil && u.had != nil {
		stmt.Clauses["ON CONFLICT"] = *u.had
	}
}

// onlyKeyed is the condition that a found row belongs to a struct with a key, or was found by other columns.
type onlyKeyed struct{ draft *draft }

// Build writes it.
func (o onlyKeyed) Build(to clause.Builder) {
	b, u := builderOf(to, o.draft), o.draft.upsert
	b.Text("(")
	defer b.Text(")")
	if len(u.keyed) > 0 {
		b.keys("excluded", u.keyed)
	}
	if !u.unclear {
		return
	}
	if len(u.keyed) > 0 {
		b.Text(" OR ")
	}
	b.Text("NOT (")
	for i, field := range o.draft.model.Schema.PrimaryFields {
		if i > 0 {
			b.Text(" AND ")
		}
		b.Column(b.Table, field.DBName)
		b.Text("=", b.proposed(field.DBName))
	}
	b.Text(")")
}

// isUnclear reports whether the clause does not say by which columns rows are found: it names a constraint, or contains SQL.
func (p *plan) isUnclear(conflict clause.OnConflict) bool {
	return conflict.OnConstraint != "" || slices.ContainsFunc(conflict.Columns, func(c clause.Column) bool { return c.Raw })
}

// onlyInserts reports whether structs without a key must not update the row whose key the database gives them.
func (u *upsert) onlyInserts() bool { return u.keyed != nil || u.unclear }

// lacksNew reports whether nothing was stored for a struct without a key.
func (w *Write) lacksNew(from []reflect.Value) bool {
	for i := range w.rows {
		if w.rows[i].Key == nil && !from[i].IsValid() {
			return true
		}
	}
	return false
}

// mayHaveMet reports whether a struct without a key was not stored, perhaps because the database gave it the key of another row. In the statement,
// structs with keys are recognized by them. The caller's own condition may exclude rows too.
func (w *Write) mayHaveMet(from []reflect.Value, where bool) bool {
	if w.returning.back || !w.lacksNew(from) {
		return false
	}
	keyed := slices.ContainsFunc(w.rows, func(row Row) bool { return row.Key != nil })
	return w.upsert.onlyInserts() && (!w.upsert.unclear || !where) || w.upsert.updates && keyed && !where
}

// refuseMet fails such an upsert.
func (w *Write) refuseMet(db *gorm.DB, stored int) {
	err := fmt.Errorf("gormlock: %s: %d of %d rows were stored: the database gave a struct without a key the key of another row, or a trigger kept it out: "+
		"let the sequence of the key go on behind the rows, with setval", statement.TableName(db.Statement), stored, w.built.proposed)
	if stored > 0 {
		journal.Doom(db, err)
	}
	w.refuse(db, err)
}

// whyUnnamed returns the error of a belongs-to or a linked struct without a key that was not stored because a row with one of its unique values
// exists. Others refer to it: without a foreign key constraint, the reference would be to no row.
func (w *Write) whyUnnamed(db *gorm.DB, from []reflect.Value) error {
	if !w.upsert.child || statement.InLinking() {
		return nil
	}
	for i := range w.rows {
		key := w.rows[i].Key
		if from[i].IsValid() || w.upsert.rows[i].found.IsValid() || key != nil && (w.upsert.skipsByKey || dialect.Of(db).FindsByAnyIndex()) {
			continue
		}
		if by := referrersOf(db.Statement).referTo(w.model.Schema, w.rows[i].Struct); len(by) > 0 {
			if err := w.whyUnreferred(db, i, by); err != nil {
				return err
			}
			continue
		}
		if key == nil {
			return fmt.Errorf("gormlock: %s: element %d of %d has no key and was not stored, because a row with a unique value of it is there, "+
				"so nothing can refer to it: read that row, and put it in its place", statement.TableName(db.Statement), i, len(w.rows))
		}
		found, err := w.look(db, [][]any{key})
		if err != nil {
			return err
		}
		if !found[0].IsValid() {
			return fmt.Errorf("gormlock: %s was not stored, because another row has a unique value of it, so nothing can refer to it: read that row, and put it in its place",
				w.rowName(db.Statement, key))
		}
	}
	return nil
}

// whyOrphaned returns the error of a struct with children that was not stored because a row with one of its unique values exists: without a foreign
// key constraint, the children would be stored for no row.
func (w *Write) whyOrphaned(db *gorm.DB, from []reflect.Value) error {
	by := referrersOf(db.Statement)
	if w.upsert.child && by == nil {
		return nil
	}
	for i := range w.rows {
		if w.upsert.child && len(by.referTo(w.model.Schema, w.rows[i].Struct)) == 0 {
			continue // see whyUnnamed
		}
		relation := ""
		if !from[i].IsValid() && !w.upsert.rows[i].found.IsValid() {
			relation = w.followed(db.Statement, w.memory.Row(i))
		}
		if relation == "" {
			continue
		}
		if key := w.rows[i].Key; key != nil {
			found, err := w.look(db, [][]any{key})
			if err != nil {
				return err
			}
			if found[0].IsValid() {
				continue // GORM stores them for that row
			}
		}
		return fmt.Errorf("gormlock: %s: element %d of %d was not stored, because a row with a unique value of it is there, so its %s would belong to no row: "+
			"read that row, and save them with it", statement.TableName(db.Statement), i, len(w.rows), relation)
	}
	return nil
}

// followed names an association of the struct whose structs GORM stores after it, or is "".
func (p *plan) followed(stmt *gorm.Statement, row reflect.Value) string {
	chosen := statement.ChosenFor(stmt, true)
	r := &p.model.Schema.Relationships
	for _, relation := range slices.Concat(r.HasOne, r.HasMany, r.Many2Many) {
		place := statement.Place(relation.Field, row)
		if place.IsValid() && !place.IsZero() && (place.Kind() != reflect.Slice || place.Len() > 0) && chosen.Has(relation.Name) && isOfKey(relation) {
			return relation.Name
		}
	}
	return ""
}

// isOfKey reports whether an association refers to its owner's key, and not to another unique column.
func isOfKey(relation *schema.Relationship) bool {
	return slices.ContainsFunc(relation.References, func(ref *schema.Reference) bool { return ref.OwnPrimaryKey && ref.PrimaryKey.PrimaryKey })
}
