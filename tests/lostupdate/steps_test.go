package lostupdate

import (
	"context"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"pgregory.net/rapid"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// steps are all that a program can do.
var steps map[string]func(*program)

// stepNames has those more often that are done more often.
var stepNames = []string{
	"create", "createMany", "load", "load", "copy", "edit", "save", "save", "update",
	"update", "updateMap", "updateExpr", "updateColumn", "note", "touch", "ignore", "expect", "softDelete",
	"hardDelete", "bulk", "batch", "saveBatch", "upsert", "upsertUnloaded", "endedContext", "hook", "unloaded",
}

func init() { // steps run steps
	steps = map[string]func(*program){
		"create":         (*program).create,
		"createMany":     (*program).createMany,
		"load":           (*program).load,
		"copy":           (*program).copy,
		"edit":           (*program).edit,
		"save":           (*program).save,
		"update":         (*program).update,
		"updateMap":      (*program).updateMap,
		"updateExpr":     (*program).updateExpr,
		"updateColumn":   (*program).updateColumn,
		"note":           (*program).note,
		"touch":          (*program).touch,
		"ignore":         (*program).ignore,
		"expect":         (*program).expect,
		"softDelete":     (*program).softDelete,
		"hardDelete":     (*program).hardDelete,
		"bulk":           (*program).bulk,
		"batch":          (*program).batch,
		"saveBatch":      (*program).saveBatch,
		"upsert":         (*program).upsert,
		"upsertUnloaded": (*program).upsertUnloaded,
		"endedContext":   (*program).endedContext,
		"hook":           (*program).hook,
		"unloaded":       (*program).unloaded,
		"transaction":    (*program).transaction,
	}
}

func (p *program) number(label string) int64 { return rapid.Int64Range(1, 9).Draw(p.T, label) }

// any picks a struct that has a key.
func (p *program) any() *writer {
	var keyed []*writer
	for _, w := range p.structs {
		if w.want.id != 0 {
			keyed = append(keyed, w)
		}
	}
	if len(keyed) == 0 {
		p.create()
		return p.any()
	}
	return rapid.SampledFrom(keyed).Draw(p.T, "struct")
}

// distinct picks structs of different rows.
func (p *program) distinct() []*writer {
	var picked []*writer
	seen := map[int64]bool{}
	for range rapid.IntRange(1, 3).Draw(p.T, "structs") {
		if w := p.any(); !seen[w.want.id] {
			seen[w.want.id] = true
			picked = append(picked, w)
		}
	}
	return picked
}

// fresh reports whether a write of the struct must succeed, and what error it must give if not.
func (p *program) fresh(w *writer, err error) bool {
	p.Helper()
	at, ok := p.rows[w.want.id]
	var stale *gormlock.StaleError
	switch live := ok && !at.deleted; {
	case live && at.version == w.want.version:
		if err != nil {
			p.Fatalf("%+v is fresh: %v", w.want, err)
		}
		return true
	case w.want.version == stand.Unread:
		if !errors.Is(err, gormlock.ErrVersionMissing) {
			p.Fatalf("%+v was not loaded: %v", w.want, err)
		}
	case !errors.Is(err, gormlock.ErrStale) || !errors.As(err, &stale):
		p.Fatalf("%+v is stale, the row is %+v: %v", w.want, at, err)
	case stale.Deleted == live:
		p.Fatalf("%+v: the row is %+v: %v", w.want, at, err)
	case live && stale.Actual != any(at.version):
		p.Fatalf("%+v: the row is %+v: %v", w.want, at, err)
	}
	p.conflict(err, false)
	return false
}

// conflict notes what a refused write that nobody acts on does to the transaction around it.
func (p *program) conflict(err error, wrote bool) {
	if p.inside > 0 && isRefused(err) && (wrote || p.gormlocks > 0) {
		p.doomed = true
	}
}

// isRefused reports whether a write was refused for the sake of its version.
func isRefused(err error) bool {
	return errors.Is(err, gormlock.ErrStale) || errors.Is(err, gormlock.ErrVersionMissing)
}

func (p *program) hold(d *doc, state int) *writer {
	w := &writer{ptr: d, want: fieldsOf(d), state: state}
	p.structs = append(p.structs, w)
	return w
}

// created registers a struct that was stored, and held before as it was.
func (p *program) created(w *writer) {
	d := w.ptr
	if _, taken := p.rows[d.ID]; d.ID == 0 || taken {
		p.Fatalf("created with the key %d", d.ID)
	}
	after := w.want
	after.id = d.ID
	if after.version == 0 {
		after.version = 1
	}
	state := p.put(d.ID, row{a: after.a, b: after.b, note: after.note, version: after.version})
	p.follows(w, after, state)
}

func (p *program) create() {
	w := p.hold(&doc{A: p.number("a"), B: p.number("b")}, 0)
	if err := p.db.Create(w.ptr).Error; err != nil {
		p.Fatal(err)
	}
	p.created(w)
}

func (p *program) createMany() {
	many := []*doc{{A: p.number("a")}, {B: p.number("b")}}
	writers := []*writer{p.hold(many[0], 0), p.hold(many[1], 0)}
	if err := p.db.CreateInBatches(many, 1).Error; err != nil {
		p.Fatal(err)
	}
	for _, w := range writers {
		p.created(w)
	}
}

// load reads a row into a new struct, or again into one that was there.
func (p *program) load() {
	w := p.any()
	at, ok := p.rows[w.want.id]
	if !ok || at.deleted {
		return
	}
	if rapid.Bool().Draw(p.T, "again") {
		*w.ptr = doc{ID: w.want.id}
	} else {
		w = p.hold(&doc{ID: w.want.id}, 0)
	}
	if err := p.db.First(w.ptr).Error; err != nil {
		p.Fatal(err)
	}
	w.want, w.state = fields{w.want.id, at.a, at.b, at.note, at.version}, at.state
	p.reads(w)
}

// copy is what a writer does who got the struct from another one.
func (p *program) copy() {
	if p.inside > 0 {
		return // a rollback does not find a copy
	}
	w := p.any()
	twin := *w.ptr
	p.hold(&twin, w.state)
}

// edit changes a struct in memory.
func (p *program) edit() {
	w := p.any()
	w.want.b = p.number("b")
	w.ptr.B = w.want.b
}

func (p *program) save() {
	w := rapid.SampledFrom(p.structs).Draw(p.T, "struct")
	if w.want.version == 0 && w.want.id != 0 {
		return
	}
	w.want.a = p.number("a")
	w.ptr.A = w.want.a
	err := p.db.Save(w.ptr).Error
	if w.want.id == 0 { // rolled back to what it was: new
		if err != nil {
			p.Fatal(err)
		}
		p.created(w)
		return
	}
	if p.fresh(w, err) {
		p.saved(w)
	}
}

func (p *program) saved(w *writer) {
	after := w.want
	after.version++
	p.follows(w, after, p.put(after.id, row{a: after.a, b: after.b, note: after.note, version: after.version, deleted: w.ptr.DeletedAt.Valid}))
}

// changes is a checked write of the column a.
func (p *program) changes(w *writer, write func(db *gorm.DB, value int64) error) {
	value := p.number("value")
	err := write(p.db, value)
	if !p.fresh(w, err) {
		return
	}
	p.changed(w, value)
}

// changed: the row has the value in the column a, and the struct has followed it.
func (p *program) changed(w *writer, value int64) {
	at, after := p.rows[w.want.id], w.want
	at.a, after.a = value, value
	at.version++
	after.version++
	p.follows(w, after, p.put(after.id, at))
}

func (p *program) update() {
	w := p.any()
	p.changes(w, func(db *gorm.DB, value int64) error { return db.Model(w.ptr).Update("a", value).Error })
}

func (p *program) updateMap() {
	w := p.any()
	p.changes(w, func(db *gorm.DB, value int64) error {
		return db.Model(w.ptr).Updates(map[string]any{"A": value}).Error
	})
}

func (p *program) updateColumn() {
	w := p.any()
	p.changes(w, func(db *gorm.DB, value int64) error { return db.Model(w.ptr).UpdateColumns(doc{A: value}).Error })
}

// updateExpr lets the server work the value out, which must come back.
func (p *program) updateExpr() {
	w := p.any()
	p.changes(w, func(db *gorm.DB, value int64) error {
		return db.Model(w.ptr).Select("A").Updates(map[string]any{"a": gorm.Expr("a - a + ?", value)}).Error
	})
}

func (p *program) note() {
	w := p.any()
	value := p.number("note")
	if !p.fresh(w, p.db.Model(w.ptr).Update("note", value).Error) {
		return
	}
	at, after := p.rows[w.want.id], w.want
	at.note, after.note = value, value
	p.put(after.id, at)
	// No version moves: it stands for this state too, in whoever holds it.
	state := w.state
	r := p.rows[after.id]
	r.state = state
	p.rows[after.id] = r
	p.follows(w, after, state)
}

func (p *program) touch() {
	w := p.any()
	if !p.fresh(w, gormlock.Touch(p.db, w.ptr)) {
		return
	}
	at, after := p.rows[w.want.id], w.want
	at.version++
	after.version++
	p.follows(w, after, p.put(after.id, at))
}

// ignore writes without a check.
func (p *program) ignore() {
	w := p.any()
	at, ok := p.rows[w.want.id]
	if !ok || at.deleted || w.want.version <= 0 {
		return
	}
	value := p.number("value")
	if err := p.db.Model(w.ptr).Clauses(gormlock.IgnoreVersion()).Update("a", value).Error; err != nil {
		p.Fatal(err)
	}
	was, after := at, w.want
	at.a, after.a = value, value
	at.version++
	after.version++
	state := p.put(after.id, at)
	if was.version != w.want.version {
		state = 0 // no version of any row
	}
	p.follows(w, after, state)
	p.journal[len(p.journal)-1].guessed = state == 0
}

// expect names the version instead of holding it.
func (p *program) expect() {
	w := p.any()
	at, ok := p.rows[w.want.id]
	if !ok || at.deleted {
		return
	}
	version := rapid.Int64Range(max(1, at.version-1), at.version+1).Draw(p.T, "version")
	value := p.number("value")
	q := p.db.Model(&doc{}).Clauses(gormlock.ExpectVersion(version)).Where("id = ?", w.want.id).Update("a", value)
	n, err := q.RowsAffected, q.Error
	if version != at.version {
		if n != 0 || !errors.Is(err, gormlock.ErrStale) {
			p.Fatalf("expected %d, the row is %+v: %v", version, at, err)
		}
		p.conflict(err, false)
		return
	}
	if n != 1 || err != nil {
		p.Fatalf("expected %d, the row is %+v: %v", version, at, err)
	}
	at.a = value
	at.version++
	p.put(w.want.id, at)
	p.bulkily()
}

func (p *program) softDelete() {
	w := p.any()
	if w.want.version <= 0 || !p.fresh(w, p.db.Delete(w.ptr).Error) {
		return
	}
	at, after := p.rows[w.want.id], w.want
	at.deleted = true
	at.version++
	after.version++
	p.follows(w, after, p.put(after.id, at))
}

func (p *program) hardDelete() {
	w := p.any()
	if at := p.rows[w.want.id]; w.want.version <= 0 || at.deleted {
		return
	}
	if p.fresh(w, p.db.Unscoped().Delete(w.ptr).Error) {
		p.drop(w.want.id)
		p.follows(w, w.want, w.state)
	}
}

// bulk writes rows by a condition: unchecked, and seen by all who hold one.
func (p *program) bulk() {
	a, value := p.number("a"), p.number("value")
	if err := p.db.Model(&doc{}).Where("a = ?", a).Update("a", value).Error; err != nil {
		p.Fatal(err)
	}
	p.bulkily()
	for id, at := range p.rows {
		if at.a == a && !at.deleted {
			at.a = value
			at.version++
			p.put(id, at)
		}
	}
}

// together judges a statement about several structs: all are written or none.
func (p *program) together(all []*writer, err error, live func(row) bool) bool {
	p.Helper()
	fresh := 0
	for _, w := range all {
		if at, ok := p.rows[w.want.id]; ok && live(at) && at.version == w.want.version {
			fresh++
		}
	}
	switch {
	case fresh == len(all) && err == nil:
		return true
	case fresh == len(all), !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing):
		p.Fatalf("%d of %d are fresh: %v", fresh, len(all), err)
	}
	p.conflict(err, fresh > 0)
	return false
}

func (p *program) batch() {
	all, value := p.distinct(), p.number("value")
	docs := make([]*doc, len(all))
	for i, w := range all {
		if w.want.version <= 0 {
			return
		}
		docs[i] = w.ptr
	}
	if !p.together(all, p.db.Model(&docs).Update("a", value).Error, func(r row) bool { return !r.deleted }) {
		return
	}
	for _, w := range all {
		p.changed(w, value)
	}
}

func (p *program) saveBatch() {
	all := p.distinct()
	docs := make([]*doc, len(all))
	for i, w := range all {
		if at, ok := p.rows[w.want.id]; w.want.version <= 0 || !ok || at.deleted {
			return
		}
		docs[i] = w.ptr
	}
	if !p.together(all, p.db.Save(docs).Error, func(row) bool { return true }) {
		return
	}
	for _, w := range all {
		p.saved(w)
	}
}

// upsert writes a struct that was loaded: it is checked, and refused if it counts as not read.
func (p *program) upsert() {
	w := p.any()
	at, ok := p.rows[w.want.id]
	if w.want.version == 0 || ok && at.deleted {
		return
	}
	onlyA := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"a"})}
	err := p.db.Clauses(onlyA).Create(w.ptr).Error
	if w.want.version == stand.Unread {
		if !errors.Is(err, gormlock.ErrVersionMissing) {
			p.Fatalf("%+v was not loaded: %v", w.want, err)
		}
		p.conflict(err, false)
		return
	}
	if !ok && errors.Is(err, gormlock.ErrStale) { // it was inserted to see that it is gone
		p.conflict(err, true)
		return
	}
	if !p.fresh(w, err) {
		return
	}
	at.a = w.want.a
	at.version++
	after := fields{id: w.want.id, a: at.a, b: at.b, note: at.note, version: at.version} // the struct is its row, whole
	p.follows(w, after, p.put(after.id, at))
}

// upsertUnloaded writes a struct that nobody loaded: all of the row, unchecked, and seen by all who hold it.
func (p *program) upsertUnloaded() {
	w := p.any()
	at, ok := p.rows[w.want.id]
	if !ok || at.deleted {
		return
	}
	value := p.number("value")
	n := p.hold(&doc{ID: w.want.id, A: value}, 0)
	if err := p.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(n.ptr).Error; err != nil {
		p.Fatal(err)
	}
	at = row{a: value, version: at.version + 1}
	after := n.want
	after.version = at.version
	p.follows(n, after, p.put(w.want.id, at))
}

// endedContext is a write that comes to nothing.
func (p *program) endedContext() {
	w := p.any()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.db.WithContext(ctx).Model(w.ptr).Update("a", p.number("value")).Error; !errors.Is(err, context.Canceled) {
		p.Fatal(err)
	}
}

// hook lets a hook fail before or after the write.
func (p *program) hook() {
	w := p.any()
	if w.want.version <= 0 {
		return
	}
	w.ptr.Hook = rapid.SampledFrom([]string{"before", "after"}).Draw(p.T, "hook")
	value, save := p.number("value"), rapid.Bool().Draw(p.T, "save")
	var err error
	if save {
		w.want.a = value
		w.ptr.A = value
		err = p.db.Save(w.ptr).Error
	} else {
		err = p.db.Model(w.ptr).Update("a", value).Error
	}
	hook := w.ptr.Hook
	w.ptr.Hook = ""
	failed := errors.Is(err, errHook)
	if hook == "before" && !failed {
		p.Fatal(err)
	}
	if hook == "before" {
		return
	}
	if failed {
		err = nil // the write itself went well
	}
	switch {
	case !p.fresh(w, err):
	case !failed:
		p.Fatal("the hook did not fail")
	case p.inside == 0: // rolled back, by GORM's transaction or, where it begins none, by one of the statement's own
	case save:
		p.saved(w)
	default:
		p.changed(w, value)
	}
}

// unloaded is a struct with a key that was never read.
func (p *program) unloaded() {
	w := p.any()
	at, ok := p.rows[w.want.id]
	if !ok || at.deleted {
		return
	}
	d := &doc{ID: w.want.id}
	var err error
	if rapid.Bool().Draw(p.T, "save") {
		err = p.db.Save(d).Error
	} else {
		err = p.db.Model(d).Update("a", p.number("value")).Error
	}
	if !errors.Is(err, gormlock.ErrVersionMissing) {
		p.Fatal(err)
	}
	if got := fieldsOf(d); got != (fields{id: w.want.id}) {
		p.Fatalf("%+v", got)
	}
	p.conflict(err, false)
}
