package guard

import (
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// array is the text of an array of integers in the server's format.
type array struct{ strings.Builder }

func newArray(n int) *array {
	a := &array{}
	a.Grow(6 * n)
	return a
}

func (a *array) add(n int64) {
	between := byte(',')
	if a.Len() == 0 {
		between = '{'
	}
	_ = a.WriteByte(between)
	var digits [20]byte
	_, _ = a.Write(strconv.AppendInt(digits[:0], n, 10))
}

func (a *array) text() string { return a.String() + "}" }

// KeyIn is the condition that a row has one of the keys.
func KeyIn(s *schema.Schema, keys [][]any) clause.Expression { return keysIn{s, keys} }

type keysIn struct {
	schema *schema.Schema
	keys   [][]any
}

// Build writes it.
func (k keysIn) Build(to clause.Builder) {
	if stmt, ok := to.(*gorm.Statement); ok {
		if b := (builder{SQL: statement.SQL{Statement: stmt}}); b.writeArray(k.schema, clause.CurrentTable, k.keys) {
			return
		}
	}
	column, values := schema.ToQueryValues(clause.CurrentTable, k.schema.PrimaryFieldDBNames, k.keys)
	clause.IN{Column: column, Values: values}.Build(to)
}

// FitIn reports whether a statement can name this many keys.
func FitIn(db *gorm.DB, keys [][]any) bool {
	const most = 30_000
	_, array := builder{SQL: statement.SQL{Statement: db.Statement}}.arrayOf(keys)
	return array || len(keys) == 0 || len(keys)*len(keys[0]) <= most
}

// keys writes `"table"."key" IN (...)`, or a row of keys. Many integers are one array: a statement has 65,535 parameters.
func (b builder) keys(table string, keys [][]any) {
	fields := b.draft.model.Schema.PrimaryFields
	if b.writeArray(b.draft.model.Schema, table, keys) {
		return
	}
	if len(fields) > 1 {
		b.Text("(")
	}
	for i, field := range fields {
		if i > 0 {
			b.Text(",")
		}
		b.columnOf(table, field.DBName)
	}
	if len(fields) > 1 {
		b.Text(")")
	}
	b.Text(" IN (")
	for i, key := range keys {
		if i > 0 {
			b.Text(",")
		}
		if len(fields) == 1 {
			b.Expression(key[0])
			continue
		}
		b.Text("(")
		b.AddVar(b.Statement, key...)
		b.Text(")")
	}
	b.Text(")")
}

// columnOf writes a column of a table. The table "excluded" is the row that an upsert proposes.
func (b builder) columnOf(table, column string) {
	if table == "excluded" {
		b.Text(b.proposed(column))
		return
	}
	b.Column(table, column)
}

func (b builder) writeArray(s *schema.Schema, table string, keys [][]any) bool {
	ids, ok := b.arrayOf(keys)
	if ok {
		b.columnOf(table, s.PrimaryFields[0].DBName)
		b.Text("=ANY(")
		b.Value(ids)
		b.Text("::bigint[])")
	}
	return ok
}

// arrayOf returns the text of an array of keys. It reports false if they are few, or not integers.
func (b builder) arrayOf(keys [][]any) (text string, ok bool) {
	const many = 100
	if len(keys) < many || len(keys[0]) != 1 || !statement.IsPostgres(b.DB) {
		return "", false
	}
	ids := newArray(len(keys))
	for _, key := range keys {
		id, ok := integer(key[0])
		if !ok {
			return "", false
		}
		ids.add(id)
	}
	return ids.text(), true
}

func integer(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case int16:
		return int64(n), true
	case uint:
		return int64(n), n <= 1<<63-1 //nolint:gosec // as compared
	case uint32:
		return int64(n), true
	case uint64:
		return int64(n), n <= 1<<63-1 //nolint:gosec // as compared
	}
	return 0, false
}
