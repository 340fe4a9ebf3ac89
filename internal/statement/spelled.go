package statement

import (
	"database/sql/driver"
	"reflect"
	"strconv"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
)

// ColumnTypes are the types of a table's columns in PostgreSQL, by the names of the columns.
type ColumnTypes struct {
	AsSent bool // no trigger can change what is stored
	types  map[string]string
}

// Respells reports whether the server may store a value differently from how the program has it: with the digits of the column, without the
// blanks of a JSON text, or as the field's own type converts it.
func (c ColumnTypes) Respells(field *schema.Field) bool {
	of, known := c.types[field.DBName]
	if _, makes := reflect.New(field.IndirectFieldType).Interface().(driver.Valuer); !known || makes || field.Serializer != nil {
		return known
	}
	if _, makes := reflect.New(field.IndirectFieldType).Interface().(gorm.Valuer); makes {
		return true
	}
	switch kind := field.IndirectFieldType.Kind(); of {
	case "text", "character varying":
		return kind != reflect.String
	case "smallint", "integer", "bigint":
		return kind < reflect.Int || kind > reflect.Uint64
	case "boolean":
		return kind != reflect.Bool
	}
	return true
}

// ColumnTypesOf asks for the columns of the statement's table, on the statement's connection. updates says that the statement may also update
// rows. Other databases than PostgreSQL return no types.
func ColumnTypesOf(db *gorm.DB, updates bool) (ColumnTypes, error) {
	c, table := ColumnTypes{types: map[string]string{}}, NameInSQL(db.Statement)
	if !dialect.Of(db).IsPostgres() || table == "" {
		return c, nil
	}
	rows, err := Unprepared(db.Statement.ConnPool).QueryContext(db.Statement.Context, columnsOf, table, updates)
	if err != nil {
		return c, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name, of string
		if err := rows.Scan(&name, &of, &c.AsSent); err != nil {
			return c, err
		}
		c.types[name] = of
	}
	return c, rows.Err()
}

// In a trigger's type, bit 4 means that it runs for inserts, and bit 16 for updates. Triggers of partitions count too, because
// rows are stored there.
const columnsOf = `SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), c.relkind IN ('r', 'p') AND NOT EXISTS (SELECT FROM pg_trigger t
	WHERE (t.tgrelid = c.oid OR t.tgrelid IN (SELECT relid FROM pg_partition_tree(c.oid))) AND t.tgtype & 3 = 3 AND t.tgtype & (CASE WHEN $2 THEN 20 ELSE 4 END) <> 0)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.oid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped`

// Spelled asks the server how it would store the values of these fields.
func Spelled(db *gorm.DB, s *schema.Schema, c ColumnTypes, fields []*schema.Field, structs []reflect.Value) (spelled []reflect.Value, err error) {
	for most := max(1, mostParameters/len(fields)); len(structs) > 0; {
		n := min(len(structs), most)
		found, err := spelledOf(db, s, c, fields, structs[:n])
		if err != nil {
			return nil, err
		}
		spelled, structs = append(spelled, found...), structs[n:]
	}
	return spelled, nil
}

// mostParameters limits the parameters of one question of Spelled.
const mostParameters = 2000

func spelledOf(db *gorm.DB, s *schema.Schema, c ColumnTypes, fields []*schema.Field, structs []reflect.Value) ([]reflect.Value, error) {
	stmt := db.Session(&gorm.Session{NewDB: true, DryRun: true}).Model(reflect.New(s.ModelType).Interface()).Statement
	sql := SQL{stmt}
	sql.Text("SELECT * FROM (VALUES ")
	for i, row := range structs {
		if i > 0 {
			sql.Text(",")
		}
		sql.Text("(", strconv.Itoa(i))
		for _, field := range fields {
			value, zero := field.ValueOf(db.Statement.Context, row)
			if zero && field.HasDefaultValue { // it was sent as DEFAULT, and zero need not be a valid value of the type
				value = nil
			}
			sql.Text(",CAST(")
			sql.Expression(value)
			sql.Text(" AS ", c.types[field.DBName], ")")
		}
		sql.Text(")")
	}
	sql.Text(") AS sent(gormlock_row")
	for _, field := range fields {
		sql.Text(",")
		sql.Column("", field.DBName)
	}
	sql.Text(")")
	spelled := make([]reflect.Value, len(structs))
	return spelled, scanRows(db, s, stmt, len(fields), func(which int, row reflect.Value) { spelled[which] = row })
}

// scanRows sends a question on the connection of the statement. The first column of the answer is a number, the others are columns of the model.
func scanRows(db *gorm.DB, s *schema.Schema, question *gorm.Statement, columns int, take func(which int, row reflect.Value)) error {
	rows, err := db.Statement.ConnPool.QueryContext(db.Statement.Context, question.SQL.String(), question.Vars...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	scan := db.Session(&gorm.Session{NewDB: true})
	for rows.Next() {
		var which int
		into := []any{&which}
		for range columns {
			into = append(into, new(any))
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		row := reflect.New(s.ModelType)
		if err := scan.ScanRows(rows, row.Interface()); err != nil {
			return err
		}
		take(which, row.Elem())
	}
	return rows.Err()
}
