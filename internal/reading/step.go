package reading

import (
	"reflect"
	"slices"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

// Regroup implements journal.Regrouper.
func (r *Read) Regroup(undone []journal.Step, all *journal.Ever, lost bool) {
	whereabouts.Regroup(undone, all, lost)
}

// Lingers implements journal.Lingering: after a rollback to a savepoint, earlier writes stay, and the program may have moved structs that were read
// since then into their places.
func (r *Read) Lingers() {}

// Stray implements journal.Straying, as does Loosen.
func (r *Read) Stray(all *journal.Astray) {
	memory.StrayRead(all, r.rows...)
	switch {
	case r.noted != nil:
		r.noted.StrayRead(all)
	case r.schema != nil:
		memory.StrayLate(all, r.schema.ModelType)
	}
}

// Loosen lets go of the structs.
func (r *Read) Loosen() {
	for _, row := range slices.Backward(r.rows) {
		memory.LoosenRead(row)
	}
}

// EachRow implements whereabouts.Reader.
func (r *Read) EachRow(visit func(*model.Model, memory.Table, reflect.Value)) {
	r.Noted()
	for _, rows := range r.rows {
		statement.EachStruct(rows, func(row reflect.Value) {
			if s := r.schemaOf(row); s != nil {
				visit(model.OfSchema(r.db, s), r.tableOf(s), row)
			}
		})
	}
}

// Seek implements whereabouts.Reader. Before Scan had ended, nobody could note what it reads. So any struct that is now in the place of another one
// may come from Scan.
func (r *Read) Seek(places *memory.Places) {
	for i := 0; i < len(r.rows) && memory.HasStrays(); i++ {
		memory.ForgetStray(r.rows[i])
	}
	if r.places = places; r.noted != nil {
		r.noted.Seek(places)
	}
	if r.late && r.schema != nil {
		places.Forget(r.schema.ModelType, false)
	}
}
