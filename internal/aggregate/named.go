package aggregate

import (
	"reflect"
	"slices"

	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// A statement on a model that is its own root may itself write the row of a root, because its structs name that row too. Whether it has, and
// whether the root's version has moved, is only known afterwards: a condition may leave the row out, and an unversioned column moves no version.

// outerSetting is the setting with the part because of whose write a root moves.
const outerSetting = "gormlock:outer_part"

func (p *part) outer() *part {
	value, _ := p.db.Statement.Settings.Load(outerSetting)
	outer, _ := value.(*part)
	return outer
}

// mayWrite reports whether the statement, or one because of which it is executed, may still write the row of a root.
func (p *part) mayWrite(r *root) bool {
	for ; p != nil; p = p.outer() {
		if p.names(r) {
			return true
		}
	}
	return false
}

// names reports whether the statement is still to be executed, and may write the row of a root.
func (p *part) names(r *root) bool {
	if p.written || p.model.Schema.Table != r.schema.Table || p.keeps && p.isThere(r.key) {
		return false
	}
	if p.keyed == nil {
		p.keyed = map[string]bool{}
		for _, key := range p.keysOfStatement() {
			p.keyed[nameOf(p.model.Schema, key)] = true
		}
	}
	return p.keyed[r.name]
}

// moveNamed moves the roots of the rows that were written, if the statement has not done so. If an outer statement may still do so, it does this
// afterwards.
func (p *part) moveNamed() error {
	roots := p.named
	p.named = nil
	for _, r := range roots {
		outer := p.outer()
		if outer != nil && outer.mayWrite(r) {
			outer.named = append(outer.named, r)
			continue
		}
		m := model.OfSchema(p.db, r.schema)
		if p.deletes && p.isThere(r.key) || m.Err == nil && guard.Moved(p.db.Statement, m, r.key) {
			continue
		}
		p.follow(r)
		if session := p.sessionOf(r); session != nil {
			if err := r.move(session); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow gives a root the structs that have its key, of the statement and of those because of which it is executed, if they are executed already.
// They get the new version if they have the old one.
func (p *part) follow(r *root) {
	for ; p != nil; p = p.outer() {
		if p.written && p.model.Schema.Table == r.schema.Table {
			r.following = append(r.following, p.structsOf(r)...)
		}
	}
}

func (p *part) structsOf(r *root) []reflect.Value {
	if p.structured == nil {
		p.structured = map[string][]reflect.Value{}
		statement.EachStruct(p.db.Statement.ReflectValue, func(row reflect.Value) {
			if row.Type() == p.model.Schema.ModelType && row.CanSet() {
				name := nameOf(p.model.Schema, p.keyOf(row))
				p.structured[name] = append(p.structured[name], row)
			}
		})
	}
	return p.structured[r.name]
}

// keysOfStatement are the keys of the structs that it writes.
func (p *part) keysOfStatement() [][]any {
	if stmt := p.db.Statement; p.deletes || slices.Contains(stmt.BuildClauses, "VALUES") {
		return p.keys(reflect.ValueOf(stmt.Dest))
	}
	return p.keys(reflect.ValueOf(p.db.Statement.Model))
}
