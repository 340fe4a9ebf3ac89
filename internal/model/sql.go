package model

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
)

// texts are the names and the SQL that all statements of a model use.
type texts struct {
	Table  string // the name of the table inside of GORM's statements
	text   *SQL
	quoted map[string]string // the columns, in the dialect's quotes
}

// SQL is the text that all versioned statements of one table use. It is written into the text that GORM builds, and
// not added to GORM's clauses. So our conditions do not defeat GORM's check for statements without conditions. And every
// SET is covered, even in a soft delete and in the generics API.
type SQL struct {
	Name    string // "version"
	Column  string // "accounts"."version"
	Held    string // the same, as it is compared with a version that is sent
	One     string // 1, or an expression that fails if the column cannot hold a larger version
	Bump    string // "version"="accounts"."version"+1
	Larger  string // CASE WHEN "accounts"."version">
	BumpAny string // the same as Bump, if the version may be NULL
	Keep    string // "version"="accounts"."version"

	BumpPast string // the same as BumpAny, but it skips the number that means "not read"
}

func newVersionSQL(db *gorm.DB, m *Model, table string) *SQL {
	stmt := &gorm.Statement{DB: db, Table: table}
	s := &SQL{}
	s.Name = stmt.Quote(clause.Column{Name: m.Column.Field.DBName})
	s.Column = stmt.Quote(clause.Column{Table: table, Name: m.Column.Field.DBName})
	s.Held = s.Column
	if m.Column.IsTemporal() {
		s.Held = dialect.Of(db).Instant(s.Column)
	}
	s.One = dialect.Of(db).One(s.Column, m.Column.Largest, m.Column.Narrow)
	s.Bump = s.Name + "=" + s.Column + "+" + s.One
	s.BumpAny = s.Name + "=COALESCE(" + s.Column + ",0)+" + s.One
	s.BumpPast = s.Name + "=COALESCE(" + s.Column + ",0)+CASE WHEN " + s.Column + "=-2 THEN 2 ELSE " + s.One + " END"
	s.Keep = s.Name + "=" + s.Column
	s.Larger = "CASE WHEN " + s.Held + ">"
	return s
}

// In returns the text for the statement, which may call its table by another name.
func (m *Model) In(stmt *gorm.Statement) *SQL {
	if stmt.Table == m.Table {
		return m.text
	}
	return newVersionSQL(stmt.DB, m, stmt.Table)
}

func quotedColumns(db *gorm.DB, s *schema.Schema) map[string]string {
	stmt := &gorm.Statement{DB: db}
	quoted := make(map[string]string, len(s.FieldsByDBName))
	for name := range s.FieldsByDBName {
		quoted[name] = stmt.Quote(clause.Column{Name: name})
	}
	return quoted
}

// Quoted is a column of a guarded model in quotes, empty for any other name.
func (m *Model) Quoted(column string) string { return m.quoted[column] }
