package children

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

const movedSetting = "gormlock:moved"

// moved holds the addresses of children that get another parent; true: they had none.
type moved map[uintptr]bool

// NoticeMoved remembers which children get another parent, before GORM gives them its key. It also
// remembers their old foreign keys, for a rollback.
func NoticeMoved(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil || db.DryRun {
		return
	}
	m := model.Of(db)
	if m == nil || !m.Children {
		return
	}
	came, links, saved := moved{}, &links{in: memory.TableOf(stmt, stmt.Schema), at: journal.Moment()}, statement.Saving(stmt)
	var rekeyed error
	unsure := doubts{}
	statement.EachStruct(stmt.ReflectValue, func(parent reflect.Value) {
		for _, relation := range slices.Concat(stmt.Schema.Relationships.HasOne, stmt.Schema.Relationships.HasMany) {
			isChecked := model.IsChecked(relation.FieldSchema)
			if !isChecked && !model.IsPart(relation.FieldSchema) {
				continue
			}
			of := m.Of(relation.FieldSchema)
			links.version, links.graph = of.Column, nil
			if isChecked && saved(relation) {
				links.graph = graphOf(stmt)
			}
			if place := statement.Place(relation.Field, parent); place.IsValid() && !place.IsZero() {
				var crossed []*schema.Relationship
				if saved(relation) {
					crossed = model.CrossedBy(relation)
				}
				statement.EachStruct(place, func(child reflect.Value) {
					if child.CanAddr() && len(crossed) > 0 {
						rekeyed = cmp.Or(rekeyed, refuseTakenAlong(stmt, relation, crossed, of, parent, child))
					}
					if child.CanAddr() {
						rekeyed = cmp.Or(rekeyed, came.look(stmt, relation, parent, child, links, func() { unsure.add(stmt, relation, parent, child, of) }))
					}
				})
			}
		}
	})
	if rekeyed == nil {
		rekeyed = unsure.judge(stmt)
	}
	if rekeyed != nil {
		links.Undo()
		journal.Doom(db, rekeyed)
		fault.Add(db, rekeyed)
		return
	}
	if len(came) == 0 {
		stmt.Settings.Delete(movedSetting)
		return
	}
	stmt.Settings.Store(movedSetting, came)
	stmt.Clauses[linksClause] = clause.Clause{Expression: links}
	if j := journal.Of(stmt); j != nil {
		j.Keep(links)
	}
}

// look compares the foreign keys of a child with its parent. If the foreign key is a part of the child's primary key and would change, that is
// an error: the child would become another row.
func (m moved) look(stmt *gorm.Statement, relation *schema.Relationship, parent, child reflect.Value, links *links, unsure func()) error {
	moves, fromNone, fills := false, true, false
	for _, ref := range relation.References {
		var owner any = ref.PrimaryValue
		if ref.OwnPrimaryKey {
			owner, _ = ref.PrimaryKey.ValueOf(stmt.Context, parent)
		} else if ref.PrimaryValue == "" {
			continue
		}
		key, zero := ref.ForeignKey.ValueOf(stmt.Context, child)
		fromNone = fromNone && (zero || !ref.OwnPrimaryKey)
		if statement.KeyName([]any{owner}) != statement.KeyName([]any{key}) {
			if ref.ForeignKey.PrimaryKey && !zero {
				return errOfAnother(stmt, relation, ref.ForeignKey)
			}
			moves, fills = true, fills || ref.ForeignKey.PrimaryKey
			links.add(ref.ForeignKey, child, owner)
		}
		if links.graph != nil {
			one := given{relation: relation, child: child, value: keyText(owner), was: keyText(key)}
			one.stored = one.value == one.was
			if err := links.graph.give(ref.ForeignKey, one); err != nil {
				return err
			}
		}
	}
	if fills {
		unsure()
	}
	if moves {
		m[child.Addr().Pointer()] = fromNone
	}
	return nil
}

// MovedHere reports whether the struct is a child that gets another parent, and whether it had none.
func MovedHere(stmt *gorm.Statement, row reflect.Value) (came, fromNone bool) {
	value, _ := stmt.Settings.Load(movedSetting)
	all, _ := value.(moved)
	if !row.CanAddr() {
		return false, false
	}
	fromNone, came = all[row.Addr().Pointer()]
	return came, fromNone
}

// links are the foreign keys of children from before GORM gave them their parent's key.
type links struct {
	all     []link
	version *column.Version // of the current children; nil: they have none
	graph   *graph          // nil: the children are not saved, or have neither a version nor a fence
	places  *memory.Places  // where the structs of the transaction are now
	in      memory.Table    // the table of the parents
	at      int64           // the moment
}

type link struct {
	key    *schema.Field
	child  reflect.Value
	was    reflect.Value
	behind reflect.Value // the old value behind it, if it is a pointer
	none   reflect.Value // the embedded pointer on the way to the foreign key, if it was nil
	given  string        // the foreign key that GORM gives, as a string
	name   string        // the child's primary key as a string; empty: it has none
	is     memory.Key    // the child's primary key

	version *column.Version // nil: the child has none
	at      column.Value    // the child's version
}

const linksClause = "gormlock:links"

// Build writes nothing. It makes links a clause, so that the statement can carry it.
func (*links) Build(clause.Builder) {}

func (l *links) add(key *schema.Field, child reflect.Value, given any) {
	one := link{key: key, child: child, given: statement.KeyName([]any{given}), name: nameIn(key.Schema, child), is: memory.KeyOf(key.Schema, child), version: l.version}
	if l.version != nil {
		one.at = l.version.Read(child)
	}
	switch place := statement.Place(key, child); {
	case !place.IsValid():
		if one.none = statement.NilOnPath(key, child); !one.none.CanSet() {
			return
		}
	case !place.CanSet():
		return
	default:
		one.was = statement.CopyOf(place)
		if place.Kind() == reflect.Pointer && !place.IsNil() {
			one.behind = statement.CopyOf(place.Elem()) // GORM writes through the pointer
		}
	}
	l.all = append(l.all, one)
}

// nameIn is the primary key of a struct of this schema as a string, empty if it has none.
func nameIn(s *schema.Schema, row reflect.Value) string {
	key, has := make([]any, len(s.PrimaryFields)), false
	for i, field := range s.PrimaryFields {
		value, zero := field.ValueOf(context.Background(), row)
		key[i], has = value, has || !zero
	}
	if !has {
		return ""
	}
	return statement.KeyName(key)
}

// Seek implements whereabouts.Seeker.
func (l *links) Seek(places *memory.Places) {
	l.places = places
	for i := range l.all {
		if one := &l.all[i]; one.name != "" {
			places.Seek(one.child.Type(), one.is)
		}
	}
}

// Undo implements journal.Step, as does Lose. It does not touch foreign keys that the caller has changed since. It also finds children that the
// caller has moved within their slice, or that GORM has copied: they have the version that the child had. A struct with another version is a
// different struct of the same row.
func (l *links) Undo() {
	type keyed struct {
		key  *schema.Field
		name string
	}
	now := make(map[keyed][]reflect.Value, len(l.all))
	for i := range l.all {
		one := &l.all[i]
		name := nameIn(one.key.Schema, one.child)
		if name == one.name && !l.places.IsUsedSince(one.child, l.at) {
			one.putBack(one.child)
		}
		now[keyed{one.key, name}] = append(now[keyed{one.key, name}], one.child)
	}
	for i := range l.all {
		one := &l.all[i]
		if one.name == "" {
			continue
		}
		for _, child := range slices.Concat(now[keyed{one.key, one.name}], l.places.Of(one.child.Type(), l.in.Beside(one.key.Schema), one.is)) {
			if (one.version == nil || one.version.Read(child).Equal(one.at)) && !l.places.IsUsedSince(child, l.at) {
				one.putBack(child)
			}
		}
	}
}

func (l *link) putBack(child reflect.Value) {
	place := statement.Place(l.key, child)
	if now, _ := l.key.ValueOf(context.Background(), child); place.IsValid() && statement.KeyName([]any{now}) == l.given {
		if l.none.IsValid() {
			l.empty(child, place)
			return
		}
		place.Set(l.was)
		if l.behind.IsValid() {
			place.Elem().Set(l.behind)
		}
	}
}

// Lose leaves the foreign keys as they are: the structs that were written with them count as not read.
func (l *links) Lose() {}

// UndoLinks runs at the end of a statement. If the statement failed, it restores the foreign keys of the children.
func UndoLinks(db *gorm.DB) {
	forgetGraph(db.Statement)
	c, ok := db.Statement.Clauses[linksClause]
	if !ok {
		return
	}
	delete(db.Statement.Clauses, linksClause)
	if l, _ := c.Expression.(*links); db.Error != nil && !journal.Stays(db.Statement) {
		l.Undo()
	}
}

// empty removes the foreign key, and the embedded struct that was made for it if that holds nothing else.
func (l *link) empty(child, place reflect.Value) {
	place.SetZero()
	if none := l.none; !none.IsNil() && none.Elem().IsZero() && child.Addr().Pointer() == l.child.Addr().Pointer() {
		none.SetZero()
	}
}
