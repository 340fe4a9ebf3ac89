package statement

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
)

// Stored finds out how the server writes keys that the program may write differently: a uuid in capitals, char(n) without
// its blanks, a time in another zone. It reads the rows with these keys from the statement's table, on the statement's
// connection. If there is no row, the key is nil.
func Stored(db *gorm.DB, s *schema.Schema, keys [][]any) ([][]any, error) {
	const most = 500
	stored := make([][]any, 0, len(keys))
	for len(keys) > 0 {
		n := min(len(keys), most)
		found, err := storedOf(db, s, keys[:n])
		if err != nil {
			return nil, err
		}
		stored, keys = append(stored, found...), keys[n:]
	}
	return stored, nil
}

func storedOf(db *gorm.DB, s *schema.Schema, keys [][]any) ([][]any, error) {
	stmt := db.Session(&gorm.Session{NewDB: true, DryRun: true}).Model(reflect.New(s.ModelType).Interface()).Statement
	SameTable(stmt, db.Statement)
	sql, whole := SQL{stmt}, "int"
	if dialect.Of(db).IsMySQL() {
		whole = dialect.Of(db).BigInt()
	}
	for i, key := range keys {
		if i > 0 {
			sql.Text(" UNION ALL ")
		}
		sql.Text("SELECT ")
		sql.Expression(clause.Expr{SQL: "CAST(? AS " + whole + ")", Vars: []any{i}})
		sql.Text(" AS gormlock_key")
		for _, field := range s.PrimaryFields {
			sql.Text(",")
			sql.Column("", field.DBName)
		}
		sql.Text(" FROM ")
		sql.QuoteTo(stmt, OwnTable)
		for n, field := range s.PrimaryFields {
			sql.Text([]string{" WHERE ", " AND "}[min(n, 1)])
			sql.Column("", field.DBName)
			sql.Text("=")
			sql.Expression(key[n])
		}
	}
	stored := make([][]any, len(keys))
	return stored, scanRows(db, s, stmt, len(s.PrimaryFields), func(which int, row reflect.Value) {
		stored[which], _ = KeyOf(db.Statement, s, row)
	})
}
