package compare

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// Answer says which of three values of one column the server considers equal: the value of base, the value of mine, and the value of the row, which
// can be NULL.
type Answer struct{ RowIsBase, RowIsMine, BaseIsMine, RowIsNull bool }

// Row asks the server to compare these columns of the row with this key.
func Row(db *gorm.DB, s *schema.Schema, key []any, columns []*schema.Field, base, mine reflect.Value) ([]Answer, error) {
	stmt := db.Session(&gorm.Session{NewDB: true, DryRun: true}).Model(reflect.New(s.ModelType).Interface()).Statement
	statement.SameTable(stmt, db.Statement)
	sql := statement.SQL{Statement: stmt}
	for i, field := range columns {
		sql.Text([]string{"SELECT ", ","}[min(i, 1)])
		c := Of(sql, "", field)
		c.Equal(c.Own, c.In(base, false))
		sql.Text(",")
		c.Equal(c.Own, c.In(mine, false))
		sql.Text(",")
		c.Equal(c.In(base, true), c.In(mine, true))
		sql.Text(",(")
		sql.Column("", field.DBName)
		sql.Text(" IS NULL)")
	}
	sql.Text(" FROM ")
	sql.QuoteTo(stmt, statement.OwnTable)
	for i, field := range s.PrimaryFields {
		sql.Text([]string{" WHERE ", " AND "}[min(i, 1)])
		sql.Column("", field.DBName)
		sql.Text("=")
		sql.Expression(key[i])
	}
	sql.Text(dialect.Of(db).Current())
	answers := make([]Answer, len(columns))
	rows, err := db.Statement.ConnPool.QueryContext(db.Statement.Context, stmt.SQL.String(), stmt.Vars...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	into := make([]any, 0, 4*len(columns))
	for i := range answers {
		into = append(into, &answers[i].RowIsBase, &answers[i].RowIsMine, &answers[i].BaseIsMine, &answers[i].RowIsNull)
	}
	if rows.Next() {
		err = rows.Scan(into...)
	}
	if err == nil {
		err = rows.Err()
	}
	return answers, err
}
