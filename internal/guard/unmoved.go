package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// A trigger before an update may leave a child with its old parent. So foreign keys that an upsert sets are returned with its rows.

// watchLinks also returns the foreign keys of children.
func (d *draft) watchLinks(stmt *gorm.Statement) {
	for _, field := range d.linksOf(stmt) {
		if field.Readable {
			d.returning.watched = append(d.returning.watched, field)
		}
	}
}

// linksOf are the foreign keys that an upsert of children sets to what they hold.
func (p *plan) linksOf(stmt *gorm.Statement) (links []*schema.Field) {
	if p.upsert == nil || !p.upsert.links {
		return nil
	}
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	for _, set := range conflict.DoUpdates {
		name, is := dialect.Excluded(set.Value)
		if field := p.model.Schema.FieldsByDBName[name]; is && field != nil && set.Column.Name == name {
			links = append(links, field)
		}
	}
	return links
}

// whyUnmoved is the error of a child whose row was returned without the foreign key that was set.
func (j *judge) whyUnmoved(db *gorm.DB, from []reflect.Value) error {
	links := slices.DeleteFunc(j.linksOf(db.Statement), func(field *schema.Field) bool {
		return !j.returning.back && !slices.Contains(j.returning.columns(), field)
	})
	var all []error
	for i, row := range from {
		if len(links) == 0 || !row.IsValid() || j.rows[i].Key == nil {
			continue
		}
		inserted := !j.upsert.rows[i].loaded && j.version.Read(row).Equal(j.version.Stored(j.rows[i].next))
		if inserted || j.hasLinks(db, links, row, j.rows[i].Struct) {
			continue
		}
		at := []clause.Expression{KeyIn(j.model.Schema, [][]any{j.rows[i].Key})}
		for _, field := range links {
			held, _ := field.ValueOf(db.Statement.Context, j.rows[i].Struct)
			at = append(at, clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: field.DBName}, Value: held})
		}
		found, err := Rows(db, j.model, slices.Clone(j.model.Schema.PrimaryFieldDBNames), true, false, at...) // the server may spell them differently
		switch {
		case err != nil:
			all = append(all, err)
		case len(found) == 0:
			all = append(all, j.kept(db.Statement, &j.rows[i]))
		}
	}
	return joined(all)
}

// hasLinks reports whether the row has the same foreign keys as the child.
func (j *judge) hasLinks(db *gorm.DB, links []*schema.Field, row, child reflect.Value) bool {
	return !slices.ContainsFunc(links, func(field *schema.Field) bool {
		stored, _ := field.ValueOf(db.Statement.Context, row)
		held, _ := field.ValueOf(db.Statement.Context, child)
		return !statement.SameValue(stored, held, column.TickIn(db, field))
	})
}
