package gormlock

import (
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// fenceColumn is the column of a model that holds the token of its last writer.
type fenceColumn struct {
	versionColumn        // how the field holds its number
	topic         string // what the names of the keys begin with; "": any key
	name, column  string // "fence", "reports"."fence"
	table         string
}

func parseFenceColumn(db *gorm.DB, field *schema.Field, words []string) (*fenceColumn, error) {
	c := &fenceColumn{versionColumn: versionColumn{field: field}, table: tableInStatement(field.Schema.Table)}
	switch {
	case field.DBName == "":
		return nil, fmt.Errorf("a fence field must be a column")
	case field.PrimaryKey:
		return nil, fmt.Errorf("a fence field cannot be the primary key")
	case len(field.Schema.PrimaryFields) == 0:
		return nil, fmt.Errorf("a fenced model needs a primary key")
	case field.Serializer != nil || !c.shapedAs(field.FieldType) || !holdsTokens(field.FieldType):
		return nil, fmt.Errorf("a fence field is an int64, a pointer to one or a sql.NullInt64, not %s", field.FieldType)
	case !field.Creatable || !field.Updatable || !field.Readable:
		return nil, fmt.Errorf("a fence column is read and written: take the permission out of the tag `gorm`")
	case field.AutoCreateTime > 0 || field.AutoUpdateTime > 0:
		return nil, fmt.Errorf("a fence field cannot be a time that GORM sets")
	}
	switch column := strings.ToLower(db.DataTypeOf(field)); {
	case !isPostgres(db), strings.HasPrefix(column, "bigint"), column == "int8", strings.HasPrefix(column, "numeric"):
	default:
		return nil, fmt.Errorf("tokens need 64 bits and the column is %s: give it the type bigint", column)
	}
	for _, word := range words {
		topic, isKey := strings.CutPrefix(strings.TrimSpace(word), "key=")
		switch {
		case !isKey:
			return nil, fmt.Errorf("unknown word %q after fence: it is key=, and the first part of the key's name", word)
		case topic == "":
			return nil, fmt.Errorf("key= names nothing: give the first part of the key's name, or leave it out")
		case c.topic != "":
			return nil, fmt.Errorf("a second key %q: a fence column has one", topic)
		}
		c.topic = topic
	}
	stmt := &gorm.Statement{DB: db, Table: c.table}
	c.name = stmt.Quote(clause.Column{Name: field.DBName})
	c.column = stmt.Quote(clause.Column{Table: c.table, Name: field.DBName})
	return c, nil
}

// holdsTokens tells whether the type is a signed integer of 64 bits, as shapedAs has found it.
func holdsTokens(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		t = t.Elem()
	case reflect.Struct:
		t = t.Field(0).Type
	}
	return (t.Kind() == reflect.Int64 || t.Kind() == reflect.Int) && t.Bits() == 64
}

// in is the column in the statement, which may call its table by another name.
func (c *fenceColumn) in(stmt *gorm.Statement) string {
	if stmt.Table == c.table {
		return c.column
	}
	return quoted(stmt, stmt.Table, c.field.DBName)
}
