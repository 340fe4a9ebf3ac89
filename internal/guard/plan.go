package guard

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// plan says what a statement should do. It is made before the statement is built, and the building does not change it.
type plan struct {
	subjects
	model   *model.Model
	intent  *asked.Intent
	op      Op
	where   conditions
	version versionGuard
	fence   *FenceGuard   // nil: the model has none
	job     *jobGuard     // nil: the model is not a job, or its worker writes it
	upsert  *upsert       // nil: not a create
	given   *column.Value // the version that the caller names in what is updated; nil: none
}

// conditions say which rows a statement is about, without the guards' conditions.
type conditions struct {
	addKey     bool // GORM leaves out the key
	ofModel    bool // it is about the struct of Model, and GORM assigns to another one
	ownSet     bool // the caller has a SET of his own, as the generics API does
	partialKey bool // a part of the key is zero
	filtered   bool // a row at the right version may stay unwritten, because the caller has conditions
	kept       bool // the conditions include those of the previous statement
	mustWrite  bool // it is Save, which must write its row or fail
	leftOut    int  // how many columns Omit has that the caller did not name: those of renewed fields
}

// prepare reads the keys and versions of an update or a delete, after its hooks have run and its belongs-to associations were saved.
func (p *plan) prepare(stmt *gorm.Statement) error {
	if err := p.readKeys(stmt); err != nil {
		return err
	}
	if p.batch && p.unchanged().guards() {
		return fmt.Errorf("gormlock: %s: IfUnchanged compares one struct, not a slice", p.model.Schema.Name)
	}
	p.unchanged().leaveOut(p, stmt)
	if err := cmp.Or(p.dropped(stmt), p.rekeyed(stmt), p.unchanged().isOf(p, stmt)); err != nil {
		return err
	}
	if !p.version.is() {
		if p.batch {
			return p.pairTwins(stmt)
		}
		return nil
	}
	given, err := p.expectedByCaller(stmt)
	if err != nil {
		return err
	}
	return p.readVersions(stmt, given)
}

// readVersions reads which version each row must have, and which one it gets.
func (p *plan) readVersions(stmt *gorm.Statement, given *column.Value) error {
	v := &p.version
	v.given = given != nil && !p.intent.Ignores()
	v.checked = (len(p.rows) > 0 || v.given) && !p.intent.Ignores()
	if v.given && v.IsUnread(*given) {
		return p.missing(stmt, nil, nil)
	}
	v.exact = true
	var now time.Time
	if v.IsTemporal() {
		now = stmt.NowFunc()
	}
	for i := range p.rows {
		row := &p.rows[i]
		row.held = p.heldSinceTouched(stmt, i)
		if row.Expected = row.held; v.given {
			row.Expected = *given
		}
		row.next = v.Next(row.Expected, now)
		v.exact = v.exact && v.Plainly(row.Expected)
		v.outrun(row.next)
	}
	if len(p.rows) == 0 {
		p.batch, v.exact, v.later = false, false, v.First(now)
		if v.given {
			p.single[0].Expected, p.single[0].next = *given, v.Next(*given, now)
			v.exact = v.Plainly(*given)
			v.outrun(p.single[0].next)
		}
	}
	if v.IsTemporal() {
		for _, version := range v.choice.all() {
			v.outrun(v.Next(version, now))
		}
		for i := range p.rows {
			p.rows[i].next = v.later
		}
	}
	v.exact = v.exact && v.checked
	if p.batch {
		return p.pairTwins(stmt)
	}
	return nil
}

// outrun makes sure that the new time of a version comes after every version that the row may have.
func (v *versionGuard) outrun(next column.Value) {
	if v.IsTemporal() && next.Time().After(v.later.Time()) {
		v.later = next
	}
}

// readKeys reads the primary keys. If the statement is a bulk statement, there are none, so its rows are dropped from the plan.
func (p *plan) readKeys(stmt *gorm.Statement) error {
	p.expand()
	if !p.batch {
		if len(p.rows) == 1 && !p.hasKey(p.rows[0].Struct) {
			p.rows = nil
		}
		return nil
	}
	keyed := 0
	for i := range p.rows {
		row := &p.rows[i]
		if row.Key, _ = statement.KeyOf(stmt, p.model.Schema, row.Struct); row.Key != nil {
			row.name = statement.KeyName(row.Key)
			keyed++
		}
	}
	if keyed > 0 && keyed < len(p.rows) {
		i := slices.IndexFunc(p.rows, func(r Row) bool { return r.Key == nil })
		return fmt.Errorf("gormlock: %s: element %d of %d has no primary key: %w", stmt.Table, i, len(p.rows), gorm.ErrPrimaryKeyRequired)
	}
	if keyed == 0 {
		p.rows, p.batch = nil, false
	}
	return nil
}

// hasKey reports whether the struct names a row. GORM leaves a zero part of a key out of the conditions. If the row has a guard, that part belongs
// there.
func (p *plan) hasKey(row reflect.Value) bool {
	zero := 0
	for _, field := range p.model.Schema.PrimaryFields {
		if place := statement.Place(field, row); !place.IsValid() || place.IsZero() {
			zero++
		}
	}
	switch {
	case zero == 0:
		return true
	case zero == len(p.model.Schema.PrimaryFields):
		return false
	}
	p.where.partialKey = p.version.is() || p.fence != nil || p.intent.Merges() || p.unchanged().guards()
	return p.where.partialKey
}

// hasWholeKey reports whether no part of the struct's key is missing.
func (p *plan) hasWholeKey(row reflect.Value) bool {
	return !slices.ContainsFunc(p.model.Schema.PrimaryFields, func(field *schema.Field) bool {
		place := statement.Place(field, row)
		return !place.IsValid() || place.IsZero()
	})
}

// named reads the key of the one row, which only an error message needs.
func (p *plan) named(stmt *gorm.Statement, row *Row) *Row {
	if row.Key != nil {
		return row
	}
	if was := p.memory.Was(0); was.IsValid() { // the statement itself may set the key
		row.Key, _ = statement.KeyOf(stmt, p.model.Schema, was)
	}
	if row.Key == nil {
		row.Key, _ = statement.KeyOf(stmt, p.model.Schema, row.Struct)
	}
	row.name = statement.KeyName(row.Key)
	return row
}

// pairTwins marks the copies of one row in a batch. Copies at different versions cannot both be fresh.
func (p *plan) pairTwins(stmt *gorm.Statement) error {
	first := make(map[string]*Row, len(p.rows))
	for i := range p.rows {
		row := &p.rows[i]
		twin := first[row.name]
		if twin == nil {
			first[row.name] = row
			continue
		}
		row.twin = true
		if !row.Expected.Equal(twin.Expected) {
			older, newer := row, twin
			if older.Expected.N > newer.Expected.N || older.Expected.Time().After(newer.Expected.Time()) {
				older, newer = newer, older
			}
			return p.stale(stmt, older, p.version.Any(newer.Expected), false).Err()
		}
	}
	return nil
}

// everywhere adds a condition to a statement about all rows of its table, which the caller allows, so that the guards can add theirs.
func (p *plan) everywhere(stmt *gorm.Statement) {
	guards := p.fence.guards() || p.version.checked || p.unchanged().guards()
	if !guards || !stmt.AllowGlobalUpdate || !p.isBulk() {
		return
	}
	if _, has := stmt.Clauses["WHERE"]; !has {
		stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "1=1"}}})
	}
}

// bindKey puts the caller's conditions into parentheses, before GORM adds the key of a struct to them. GORM would write `a OR b AND id = 1`. That
// finds other rows too, and one of them would be taken for the struct's row.
func (p *plan) bindKey(stmt *gorm.Statement) {
	if _, given := statement.Conditions(stmt); !p.isBulk() && !isPlain(given) {
		mark.Bracket(stmt)
	}
}

// isBare reports, before GORM builds the statement, that the caller gave it no clause: its only clause is its Write.
func isBare(stmt *gorm.Statement) bool { return len(stmt.Clauses) == 1 }

// isFiltered reports, before GORM adds the key, whether the caller has conditions of his own.
func isFiltered(stmt *gorm.Statement) bool {
	if isBare(stmt) {
		return false
	}
	_, where := stmt.Clauses["WHERE"]
	_, from := stmt.Clauses["FROM"]
	return where || from
}

// guards are the guards of the statement.
func (p *plan) guards() [4]guard {
	var all [4]guard
	if p.fence != nil {
		all[0] = p.fence
	}
	if p.version.is() {
		all[1] = &p.version
	}
	if unchanged := p.unchanged(); unchanged.guards() {
		all[2] = unchanged
	}
	if p.job != nil {
		all[3] = p.job
	}
	return all
}

// isNew reports whether Save may insert a struct for which it found no row: the application made its key, and it has no version. Save may not if 0
// is a version that a row can have, if the caller named the version, or if the struct counts as not read.
func (p *plan) isNew(row *Row) bool {
	return p.version.checked && !p.version.given && !p.version.Loaded(row.held) && !p.version.IsUnread(row.held)
}

// unread is the version of a struct that differs from its row, so that its writes are refused.
func (p *plan) unread(row *Row) column.Value {
	if !p.version.Loaded(row.held) {
		return row.held
	}
	return p.version.Unread()
}

// heldSinceTouched is the version that the struct of a row holds. If the transaction has since moved the row's version only because a part was
// written, it is the new version, because nothing else of the row has changed.
func (p *plan) heldSinceTouched(stmt *gorm.Statement, i int) column.Value {
	held, row := p.heldByCaller(stmt, i), &p.rows[i]
	if !p.model.IsRoot() || p.intent.Touches() || !hasWrite(stmt, p.model, func(other *Write) bool { return other.intent.Touches() }) {
		return held
	}
	if to, touched := Touched(stmt, p.model, p.named(stmt, row).Key, held); touched {
		return to
	}
	return held
}

// onlyMerged removes from a SET what the row already has.
func (p *plan) onlyMerged(set clause.Set) clause.Set {
	merged := p.intent.Merged
	kept := make(clause.Set, 0, len(set))
	for _, assignment := range set {
		field := p.model.Schema.FieldsByDBName[assignment.Column.Name]
		if field == nil || merged.Writes[field.DBName] || field.AutoUpdateTime > 0 || !holds(merged.Row, field, p.rows[0].Struct) {
			kept = append(kept, assignment)
		}
	}
	return kept
}

// hides reports whether an assignment is a soft delete.
func (p *plan) hides(a clause.Assignment) bool {
	field := p.model.Schema.LookUpField(a.Column.Name)
	if field == nil || a.Value == nil || !p.model.IsSoftDelete(field) {
		return false
	}
	if _, is := a.Value.(driver.Valuer); is {
		value, err := statement.Sent(a.Value)
		return err != nil || value != nil
	}
	return !reflect.ValueOf(a.Value).IsZero()
}

// columnsToLookAt are the columns that identify the row and show its state.
func (p *plan) columnsToLookAt() []string {
	columns := make([]string, 0, len(p.model.Schema.PrimaryFields)+1)
	for _, field := range p.model.Schema.PrimaryFields {
		columns = append(columns, field.DBName)
	}
	if p.version.is() {
		columns = append(columns, p.version.Field.DBName)
	}
	if p.fence.guards() {
		columns = append(columns, p.fence.Field.DBName)
	}
	if p.job.guards() {
		columns = append(columns, p.job.State.DBName)
	}
	return columns
}
