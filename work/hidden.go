package work

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/jobmark"
)

// under returns the table as queries with the context of db see it. Its {live} is the condition that fields of the model, such as gorm.DeletedAt,
// add to each query. A claim is such a query, so a job that is hidden from it must not hold up other jobs.
func (t *table) under(db *gorm.DB) (*table, error) {
	if len(t.fields.QueryClauses) == 0 {
		return t, nil
	}
	query := db.Session(&gorm.Session{NewDB: true, DryRun: true}).Model(reflect.New(t.fields.ModelType).Interface()).Statement
	query.Schema, query.Table = t.fields, t.fields.Table
	for _, c := range t.fields.QueryClauses {
		query.AddClause(c)
	}
	where, _ := query.Clauses["WHERE"].Expression.(clause.Where)
	seen, live := *t, ""
	seen.hidden = nil
	for _, condition := range where.Exprs {
		column, value, ok := constant(condition)
		if !ok {
			return nil, optionError("%s hides rows by a condition that does not compare one column with one number, text or NULL: workers cannot use it, so leave its field out of the model of the jobs", t.fields.Name)
		}
		live += " AND " + query.Quote(column)
		if value == nil {
			live += " IS NULL"
		} else {
			live += " = '" + *value + "'"
		}
		seen.hidden = append(seen.hidden, jobmark.Hidden{Column: column, Unless: value})
	}
	seen.names = strings.NewReplacer(append(slices.Clone(t.pairs), "{live}", live)...)
	seen.denied = query.Error
	return &seen, nil
}

// allowed returns the error of a field that refuses queries in this context, such as one that requires a tenant. Making the table and storing
// outcomes need no such context.
func (t *table) allowed() error {
	if t.denied == nil {
		return nil
	}
	return fmt.Errorf("gormlock: work: queries of %s are refused in this context: %w", t.fields.Name, t.denied)
}

// constant returns the column of a comparison with a constant, and the constant; nil is NULL.
func constant(condition clause.Expression) (column string, value *string, ok bool) {
	equal, _ := condition.(clause.Eq)
	switch named := equal.Column.(type) {
	case clause.Column:
		column = named.Name
	case string:
		column = named
	default:
		return "", nil, false
	}
	stored, err := driver.DefaultParameterConverter.ConvertValue(equal.Value)
	if err != nil {
		return "", nil, false
	}
	switch stored.(type) {
	case nil:
		return column, nil, true
	case int64, bool, string:
		text := fmt.Sprint(stored)
		return column, &text, !strings.ContainsAny(text, `'\?,`) // such texts would need escapes
	default:
		return "", nil, false
	}
}
