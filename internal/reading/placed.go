package reading

import (
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// placed has structs that a transaction has read before it wrote anything. A rollback takes nothing of them back. But the caller may move to
// their places what the transaction writes later, as by sorting a list, and a rollback must find that there.
type placed struct {
	model *model.Model
	in    memory.Table
	rows  reflect.Value
}

// keepPlaces notes where a query has put structs of its model.
func keepPlaces(stmt *gorm.Statement, rows reflect.Value) {
	m := model.Of(stmt.DB)
	if m == nil || m.Column == nil {
		return
	}
	for rows.Kind() == reflect.Pointer {
		rows = rows.Elem()
	}
	switch {
	case rows.Kind() == reflect.Struct && rows.CanAddr():
	case rows.Kind() == reflect.Slice && rows.Len() > 0:
		rows = rows.Slice(0, rows.Len()) // the caller may shorten his own
	default:
		return
	}
	journal.Of(stmt).Keep(&placed{m, memory.TableOf(stmt, m.Schema), rows})
}

// EachPlace implements whereabouts.Placed.
func (p *placed) EachPlace(visit func(*model.Model, memory.Table, reflect.Value)) {
	statement.EachStruct(p.rows, func(row reflect.Value) {
		if row.Type() == p.model.Schema.ModelType {
			visit(p.model, p.in, row)
		}
	})
}

// Undo implements journal.Step, as does Lose.
func (*placed) Undo() {}

// Lose does nothing either.
func (*placed) Lose() {}
