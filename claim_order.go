package gormlock

import (
	"cmp"
	"database/sql"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// claimOrder is an order that claimed rows show themselves: by numbers and times that the claim does not change. They are
// sorted by it when they are here, which spares the server from telling the place of each.
type claimOrder []orderColumn

type orderColumn struct {
	field      *schema.Field
	descending bool
}

// shownOrder is the order that the statement asks for, and whether its rows will show it. What the columns of a table hold
// is known from the claim before.
func (c *claim) shownOrder(stmt *gorm.Statement) (claimOrder, bool) {
	given, ordered := stmt.Clauses["ORDER BY"]
	if !ordered {
		return nil, true
	}
	by, plain := given.Expression.(clause.OrderBy)
	last := c.model.places.Load()
	if !plain || by.Expression != nil || given.Builder != nil || given.BeforeExpression != nil || given.AfterExpression != nil || last == nil || last.table != stmt.Table {
		return nil, false
	}
	order := make(claimOrder, 0, 4)
	for _, column := range by.Columns {
		for name, descending := range orderTerms(column, stmt.Table) {
			field := stmt.Schema.FieldsByDBName[name]
			if field == nil || !slices.Contains(last.shown, field) || c.changes(field) {
				return nil, false
			}
			order = append(order, orderColumn{field, descending})
		}
	}
	return order, true
}

// changes reports whether the field of a claimed row may not be what it was when the rows were put in order. What a
// program never writes, the server computes.
func (c *claim) changes(field *schema.Field) bool {
	return !field.Creatable || assignmentOf(c.set, field.DBName) >= 0 || c.model.column != nil && c.model.column.field == field
}

// orderTerms are the columns of the table in a column of ORDER BY, which may be a list, and which of them descend. What
// is anything else has no name.
func orderTerms(column clause.OrderByColumn, table string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		switch of := column.Column.Table; {
		case column.Column.Raw && !column.Desc:
			for term := range strings.SplitSeq(column.Column.Name, ",") {
				if !yield(orderTerm(term, table)) {
					return
				}
			}
		case !column.Column.Raw && (of == "" || of == clause.CurrentTable || of == table):
			yield(column.Column.Name, column.Desc)
		default:
			yield("", false)
		}
	}
}

// orderTerm reads a term of ORDER BY as the server does.
func orderTerm(term, table string) (name string, descending bool) {
	name, direction, _ := strings.Cut(strings.TrimSpace(term), " ")
	switch strings.ToUpper(strings.TrimSpace(direction)) {
	case "", "ASC":
	case "DESC":
		descending = true
	default:
		return "", false
	}
	if of, column, qualified := strings.Cut(name, "."); qualified {
		if unquoted(of) != table {
			return "", false
		}
		name = column
	}
	return unquoted(name), descending
}

// unquoted is the name that a part of SQL stands for: what is not quoted, the server writes small.
func unquoted(part string) string {
	if inner, quoted := strings.CutPrefix(part, `"`); quoted {
		return strings.TrimSuffix(inner, `"`)
	}
	return strings.ToLower(part)
}

// showsOrder reports whether values of the column, read into the field, compare as they do in the server.
func showsOrder(field *schema.Field, column *sql.ColumnType) bool {
	switch column.DatabaseTypeName() {
	case "INT2", "INT4", "INT8":
		return field.FieldType.Kind() >= reflect.Int && field.FieldType.Kind() <= reflect.Int64
	case "TIMESTAMPTZ", "TIMESTAMP", "DATE":
		return field.FieldType == timeType
	}
	return false
}

// rank is where a value stands in an order.
type rank struct {
	beyond int8 // of NULL, which is more than every value
	n      int64
}

func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(r.beyond, other.beyond), cmp.Compare(r.n, other.n))
}

// epoch is from where the server counts: its microseconds fit 64 bits from there.
const epoch = 946684800

// rankOf is the rank of a value that the driver has read.
func rankOf(value any, descending bool) rank {
	var r rank
	switch v := value.(type) {
	case nil:
		r.beyond = 1
	case int64:
		r.n = v
	case time.Time:
		r.n = (v.Unix()-epoch)*1e6 + int64(v.Nanosecond())/1e3
	}
	if descending {
		r.beyond, r.n = -r.beyond, ^r.n
	}
	return r
}

// Scan implements [sql.Scanner]: a rank reads the place that the server says a row had. For a number database/sql takes a
// way through its text.
func (r *rank) Scan(value any) error {
	if _, ok := value.(int64); !ok {
		return fmt.Errorf("gormlock: claim: the place of a row is %v", value)
	}
	*r = rankOf(value, false)
	return nil
}
