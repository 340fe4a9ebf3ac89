package guard

import (
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// An upsert of GORM stores defaults in place of zeros, even for structs that were read from their rows. It keeps the time of creation and columns
// with a default that only the server knows, and leaves out columns that only updates may write. If a struct stands for a row, the row gets what
// the struct holds instead, as in an UPDATE. New rows get what GORM gives them.

// heldField is a column for which GORM would store another value than a struct holds.
type heldField struct {
	*schema.Field
	rows []heldValue // by struct; nil: it is the time of the update
}

// heldValue is what a struct holds, after hooks and before GORM changes it.
type heldValue struct {
	value any
	zero  bool
}

// readHeld reads what structs hold that stand for rows.
func (p *plan) readHeld(stmt *gorm.Statement, conflict clause.OnConflict) {
	u := p.upsert
	if u.skips || u.links {
		return
	}
	stand := false
	for i := range u.rows {
		r, row := &u.rows[i], &p.rows[i]
		r.stands = row.Key != nil && (r.loaded || r.unread || p.intent.Ignores() && !p.version.Unset(row.held))
		r.finds = r.stands || row.Key != nil || !p.isOnKey(conflict) || dialect.Of(stmt.DB).FindsByAnyIndex()
		stand = stand || r.stands
	}
	if !stand {
		return
	}
	for _, field := range p.fieldsToHold(stmt, conflict) {
		held := heldField{Field: field}
		if field.AutoUpdateTime == 0 {
			held.rows = make([]heldValue, len(p.rows))
		}
		for i := range held.rows {
			held.rows[i].value, held.rows[i].zero = field.ValueOf(stmt.Context, p.rows[i].Struct)
		}
		u.held = append(u.held, held)
	}
}

// fieldsToHold are the columns that the upsert must write, and for which GORM stores other values than structs hold.
func (p *plan) fieldsToHold(stmt *gorm.Statement, conflict clause.OnConflict) []*schema.Field {
	var fields []*schema.Field
	add := func(field *schema.Field) {
		if field != nil && !field.PrimaryKey && !statement.IsComputed(field) && !owned(p.guards(), field.DBName) && !slices.Contains(fields, field) &&
			(field.HasDefaultValue || field.AutoCreateTime > 0 || !field.Creatable) {
			fields = append(fields, field)
		}
	}
	for _, a := range conflict.DoUpdates {
		column, _ := dialect.Excluded(a.Value)
		if field := p.model.Schema.LookUpField(column); field != nil && field.AutoUpdateTime == 0 {
			add(field)
		}
	}
	if !conflict.UpdateAll {
		return fields
	}
	chosen := statement.ChosenFor(stmt, false)
	for _, name := range p.model.Schema.DBNames {
		if chosen.Has(name) {
			add(p.model.Schema.FieldsByDBName[name])
		}
	}
	return fields
}

// holds reports whether rows get what structs hold where GORM would store other values.
func (u *upsert) holds() bool { return u != nil && len(u.held) > 0 }

// isSure reports whether the struct can only update a row: if it inserted one, the statement would be undone.
func (r *upsertRow) isSure() bool { return r.stands && r.loaded && !r.mayBeNew }

// allSure reports whether isSure holds for each struct.
func (u *upsert) allSure() bool {
	return !slices.ContainsFunc(u.rows, func(r upsertRow) bool { return !r.isSure() })
}

// proposeHeld puts what structs hold into their rows of VALUES. GORM may have put a default there, and into the struct.
func (b builder) proposeHeld(values *clause.Values) {
	u := b.draft.upsert
	for _, f := range u.held {
		at := indexOf(values.Columns, f.DBName)
		if at < 0 && u.allSure() && f.rows != nil {
			at = len(values.Columns)
			values.Columns = append(values.Columns, clause.Column{Name: f.DBName})
			for i := range values.Values {
				values.Values[i] = append(values.Values[i], f.rows[i].value)
			}
		}
		for i := range f.rows {
			if at >= 0 {
				b.proposeHeldIn(&values.Values[i][at], f, i)
			}
		}
	}
}

// proposeHeldIn does the same for one struct.
func (b builder) proposeHeldIn(cell *any, f heldField, i int) {
	r, held := &b.draft.upsert.rows[i], f.rows[i]
	kept, is := (*cell).(clause.Expr)
	switch {
	case held.zero && f.AutoCreateTime > 0: // it says nothing about a time that the row has
	case held.zero && r.isSure():
		*cell = held.value
		if place := statement.Place(f.Field, b.draft.rows[i].Struct); place.IsValid() && place.CanSet() {
			place.SetZero()
		}
	case !held.zero || !is || kept.SQL != "DEFAULT" || dialect.Of(b.DB).KnowsDefault():
	case r.stands:
		*cell = held.value
	default:
		fault.Add(b.DB, fmt.Errorf("gormlock: %s.%s: %s cannot store the default of a new struct beside structs that were read: save the new structs by themselves",
			b.draft.model.Schema.Name, f.Name, dialect.Of(b.DB)))
	}
}

func indexOf(columns []clause.Column, name string) int {
	return slices.IndexFunc(columns, func(c clause.Column) bool { return c.Name == name })
}

// updateHeld makes an upsert assign what the structs hold to the rows that it finds.
func (b builder) updateHeld(found *clause.OnConflict) {
	if len(b.draft.upsert.held) == 0 {
		return
	}
	values, _ := b.Clauses["VALUES"].Expression.(clause.Values)
	set := slices.Clone(found.DoUpdates)
	for _, f := range b.draft.upsert.held {
		u := heldUpdate{draft: b.draft, heldField: f}
		u.proposed = indexOf(values.Columns, f.DBName) >= 0 || b.draft.upsert.allSure()
		assigned := func(a clause.Assignment) bool { return a.Column.Name == f.DBName }
		switch {
		case found.UpdateAll && f.rows == nil && !slices.ContainsFunc(set, assigned):
			set = append(set, *timeOf(b.Statement, f.DBName))
		case f.rows == nil:
		case found.UpdateAll && !slices.ContainsFunc(set, assigned):
			u.added = true
			set = append(set, clause.Assignment{Column: clause.Column{Name: f.DBName}, Value: u.value()})
		default:
			for i := range set {
				if column, is := dialect.Excluded(set[i].Value); is && column == f.DBName {
					set[i].Value = u.value()
				}
			}
		}
	}
	found.DoUpdates, found.DoNothing = set, found.DoNothing && len(set) == 0
}

// timeOf is the assignment of the time of an update.
func timeOf(stmt *gorm.Statement, column string) *clause.Assignment {
	times := statement.UpdateTimes(stmt.DB, stmt.Schema)
	return &times[slices.IndexFunc(times, func(a clause.Assignment) bool { return a.Column.Name == column })]
}

// heldUpdate is what an upsert assigns to a column of a found row.
type heldUpdate struct {
	heldField
	draft    *draft
	proposed bool // the column is in VALUES
	added    bool // GORM does not assign it: rows without a struct keep what they have
}

// value is the proposed value if all rows get that one.
func (u heldUpdate) value() any {
	if u.proposed {
		plain := true
		for i := range u.rows {
			plain = plain && !u.isApart(i) && !u.keeps(i)
		}
		if plain {
			return clause.Column{Table: "excluded", Name: u.DBName}
		}
	}
	return u
}

// isApart reports whether the struct's value is not in VALUES, where a new row gets a default.
func (u heldUpdate) isApart(i int) bool {
	r, held := &u.draft.upsert.rows[i], u.rows[i]
	return r.stands && !u.isUnsaid(i) && (!u.proposed || held.zero && !r.isSure())
}

// isUnsaid reports whether the struct has no time of creation. Then the row's is kept, as in GORM.
func (u heldUpdate) isUnsaid(i int) bool { return u.AutoCreateTime > 0 && u.rows[i].zero }

// keeps reports whether a row that is found for this struct keeps its value.
func (u heldUpdate) keeps(i int) bool {
	r := &u.draft.upsert.rows[i]
	return u.added && r.finds && (!r.stands || u.isUnsaid(i))
}

// Build writes it.
func (u heldUpdate) Build(to clause.Builder) {
	b := builderOf(to, u.draft)
	zeros, others, proposed, keep := u.sorted()
	if len(zeros)+len(others)+len(proposed) > 0 {
		b.Text("CASE")
		defer b.Text(" END")
	}
	for _, i := range others {
		b.when([][]any{u.draft.rows[i].Key})
		b.Expression(u.rows[i].value)
	}
	if len(zeros) > 0 {
		b.when(u.keys(zeros))
		b.Expression(u.rows[zeros[0]].value)
	}
	if len(proposed) > 0 {
		b.when(u.keys(proposed))
		b.Text(b.proposed(u.DBName))
	}
	if len(zeros)+len(others)+len(proposed) > 0 {
		b.Text(" ELSE ")
	}
	if keep {
		b.Column(b.Table, u.DBName)
	} else {
		b.Text(b.proposed(u.DBName))
	}
}

// sorted says which structs hold a zero, or another value that is not in VALUES. If other rows keep their values, it also says which structs hold
// the proposed value.
func (u heldUpdate) sorted() (zeros, others, proposed []int, keep bool) {
	keep = u.added && !u.proposed
	for i, held := range u.rows {
		switch {
		case u.isApart(i) && held.zero:
			zeros = append(zeros, i)
		case u.isApart(i):
			others = append(others, i)
		case u.keeps(i):
			keep = true
		case u.draft.upsert.rows[i].stands:
			proposed = append(proposed, i)
		}
	}
	if !keep {
		proposed = nil
	}
	return zeros, others, proposed, keep
}

func (u heldUpdate) keys(rows []int) [][]any {
	keys := make([][]any, len(rows))
	for n, i := range rows {
		keys[n] = u.draft.rows[i].Key
	}
	return keys
}

// when begins the branch of the structs with these keys.
func (b builder) when(keys [][]any) {
	b.Text(" WHEN ")
	b.keys("excluded", keys)
	b.Text(" THEN ")
}
