package guard

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// plan says what a statement should do. It is made before the statement is built, and building does not change it.
type plan struct {
	model   *model.Model
	intent  *Intent
	op      Op
	batch   bool // the structs are in a slice
	emptied bool // GORM has changed the structs before: what they were is not known
	where   conditions
	rows    []Row // one for each struct; none: the statement is about rows that no struct stands for
	single  [1]Row
	version versionGuard
	fence   *FenceGuard // nil: the model has none
	upsert  *upsert     // nil: no create
}

// conditions say which rows a statement is about, without the conditions of its guards.
type conditions struct {
	addKey     bool // GORM leaves the key out
	ofModel    bool // it is about the struct of Model, and GORM assigns to another
	ownSet     bool // the caller has a SET of his own, as the generics API makes one
	partialKey bool // a part of the key is zero
	filtered   bool // a row at the right version may stay unwritten: the caller has conditions of his own
	mustWrite  bool // it is Save, which must write its row or fail
}

// expand makes a row of each struct.
func (p *plan) expand(structs *memory.Structs) {
	if !p.batch {
		p.rows = p.single[:structs.Count]
	} else {
		p.rows = make([]Row, structs.Count)
	}
	for i := range p.rows {
		p.rows[i].Struct = structs.Row(i)
	}
}

// prepare reads the keys and versions of an update or a delete. Its hooks, and the associations saved before it, have run by
// then.
func (w *Write) prepare(stmt *gorm.Statement) error {
	if err := w.readKeys(stmt); err != nil {
		return err
	}
	if w.batch && w.intent.columns() != nil {
		return fmt.Errorf("gormlock: %s: IfUnchanged compares one struct, not a slice", w.model.Schema.Name)
	}
	if !w.version.is() {
		if w.batch {
			return w.pairTwins(stmt)
		}
		return nil
	}
	given, err := w.expectedByCaller(stmt)
	if err != nil {
		return err
	}
	return w.readVersions(stmt, given)
}

// readVersions reads what version each row must have, and which one it gets.
func (w *Write) readVersions(stmt *gorm.Statement, given *column.Value) error {
	v := &w.version
	v.given = given != nil && !w.intent.ignores()
	v.checked = (len(w.rows) > 0 || v.given) && !w.intent.ignores()
	v.exact = true
	var now time.Time
	if v.IsTemporal() {
		now = stmt.NowFunc()
	}
	for i := range w.rows {
		row := &w.rows[i]
		row.held = w.heldSinceTouched(stmt, row)
		if row.Expected = row.held; v.given {
			row.Expected = *given
		}
		row.next = v.Next(row.Expected, now)
		v.exact = v.exact && v.Plainly(row.Expected)
		v.outrun(row.next)
		if !w.intent.ignores() && v.IsInteger() && row.Expected.N >= v.Largest && !v.IsUnread(row.Expected) {
			return fmt.Errorf("gormlock: %s: version %d is the largest its column holds: give the column a larger type", w.rowName(stmt, w.named(stmt, row).Key), row.Expected.N)
		}
	}
	if len(w.rows) == 0 {
		w.batch, v.exact, v.later = false, false, v.First(now)
		if v.given {
			w.single[0].Expected, w.single[0].next = *given, v.Next(*given, now)
			v.exact = v.Plainly(*given)
			v.outrun(w.single[0].next)
		}
	}
	if v.IsTemporal() {
		for _, version := range v.choice.all() {
			v.outrun(v.Next(version, now))
		}
		for i := range w.rows {
			w.rows[i].next = v.later
		}
	}
	v.exact = v.exact && v.checked
	if w.batch {
		return w.pairTwins(stmt)
	}
	return nil
}

// outrun makes sure that the new time of a version comes after every version that the row may have.
func (v *versionGuard) outrun(next column.Value) {
	if v.IsTemporal() && next.Time().After(v.later.Time()) {
		v.later = next
	}
}

// readKeys reads the primary keys. A bulk statement has none, so its rows are dropped from the plan.
func (w *Write) readKeys(stmt *gorm.Statement) error {
	w.expand(&w.memory)
	if !w.batch {
		if len(w.rows) == 1 && !w.hasKey(w.rows[0].Struct) {
			w.rows = nil
		}
		return nil
	}
	keyed := 0
	for i := range w.rows {
		row := &w.rows[i]
		if row.Key, _ = statement.KeyOf(stmt, w.model.Schema, row.Struct); row.Key != nil {
			row.name = statement.KeyName(row.Key)
			keyed++
		}
	}
	if keyed > 0 && keyed < len(w.rows) {
		i := slices.IndexFunc(w.rows, func(r Row) bool { return r.Key == nil })
		return fmt.Errorf("gormlock: %s: element %d of %d has no primary key: %w", stmt.Table, i, len(w.rows), gorm.ErrPrimaryKeyRequired)
	}
	if keyed == 0 {
		w.rows, w.batch = nil, false
	}
	return nil
}

// hasKey reports whether the struct names a row. GORM leaves a zero part of a key out of the conditions; for a versioned
// struct it belongs there.
func (w *Write) hasKey(row reflect.Value) bool {
	zero := 0
	for _, field := range w.model.Schema.PrimaryFields {
		if place := statement.Place(field, row); !place.IsValid() || place.IsZero() {
			zero++
		}
	}
	switch {
	case zero == 0:
		return true
	case zero == len(w.model.Schema.PrimaryFields):
		return false
	}
	w.where.partialKey = w.version.is() || w.intent.Merges() || w.fence != nil && w.fence.Read(row).N != 0
	return w.where.partialKey
}

// hasWholeKey reports whether no part of the struct's key is missing.
func (p *plan) hasWholeKey(row reflect.Value) bool {
	return !slices.ContainsFunc(p.model.Schema.PrimaryFields, func(field *schema.Field) bool {
		place := statement.Place(field, row)
		return !place.IsValid() || place.IsZero()
	})
}

// named reads the key of the one row, which is needed only for a message.
func (w *Write) named(stmt *gorm.Statement, row *Row) *Row {
	if row.Key != nil {
		return row
	}
	if was := w.memory.Was(0); was.IsValid() { // the statement may set the key itself
		row.Key, _ = statement.KeyOf(stmt, w.model.Schema, was)
	}
	if row.Key == nil {
		row.Key, _ = statement.KeyOf(stmt, w.model.Schema, row.Struct)
	}
	row.name = statement.KeyName(row.Key)
	return row
}

// pairTwins marks the copies of one row in a batch. Copies at different versions cannot both be fresh.
func (w *Write) pairTwins(stmt *gorm.Statement) error {
	first := make(map[string]*Row, len(w.rows))
	for i := range w.rows {
		row := &w.rows[i]
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
			return w.stale(stmt, older, w.version.Any(newer.Expected), false).Err()
		}
	}
	return nil
}

// isBulk reports whether the statement is about rows that no struct stands for.
func (p *plan) isBulk() bool { return len(p.rows) == 0 }

// compares reports whether a row is written only as it was read.
func (w *Write) compares() bool {
	return w.version.checked && !w.built.unchecked || w.intent.columns() != nil || w.where.mustWrite
}

// decides reports whether writing no row can be a conflict.
func (w *Write) decides() bool { return w.compares() || w.fence.guards() }

// everywhere adds a condition to a statement about all rows of its table, which the caller allows, so that the guards can
// add theirs.
func (p *plan) everywhere(stmt *gorm.Statement) {
	guards := p.fence.guards() || p.version.checked || p.intent.columns() != nil
	if !guards || !stmt.AllowGlobalUpdate || !p.isBulk() {
		return
	}
	if _, has := stmt.Clauses["WHERE"]; !has {
		stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "1=1"}}})
	}
}

// isBare reports, before GORM builds the statement, that the caller gave it no clause: the only one is that of its Write.
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
