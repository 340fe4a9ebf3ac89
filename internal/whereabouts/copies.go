package whereabouts

import (
	"maps"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

const copiedSetting = "gormlock:copied"

// NoticeCopies marks the save of an association whose children GORM copies: Association(…).Append and Replace of a relation that holds its structs
// by value. GORM has already moved them to a new slice, whatever becomes of the statement. After the statement, it copies the structs that it was
// given back to the caller.
func NoticeCopies(db *gorm.DB) {
	stmt := db.Statement
	if stmt.Schema != nil && statement.Transaction(stmt) != nil && model.NeedsJournal(db, stmt.Schema) && !isMarked(stmt) && statement.InAssociation() {
		if relation := savedRelation(stmt); relation == nil || IsHeldByValue(relation) {
			stmt.Settings.Store(copiedSetting, stmt)
			keepCopies(stmt)
		}
	}
	refuseFailedCall(db)
	refuseFailedAppend(db)
}

func isMarked(stmt *gorm.Statement) bool {
	_, marked := stmt.Settings.Load(copiedSetting)
	return marked
}

// keepCopies notes where the structs are now, and shows the versions that are out of sight there.
func keepCopies(stmt *gorm.Statement) {
	j := journal.Of(stmt)
	if j == nil {
		return
	}
	keepOwners(stmt, stmt.ReflectValue)
	if j.Written() == 0 {
		return
	}
	c := copiesIn(stmt)
	for _, h := range hiddenIn(stmt) {
		h.show()
	}
	c.judge(stmt)
	j.Keep(c)
}

// judge finds out which of the structs have versions from before the transaction, and which may be copies of structs that the transaction has read.
func (c *copies) judge(stmt *gorm.Statement) {
	first, unsure := firstStatesOf(stmt), map[*model.Model][][]any{}
	for i := range c.held {
		one := &c.held[i]
		if one.model.Column == nil {
			continue
		}
		is, version := rowIn(one.model, one.place), one.model.Column.Read(one.place)
		key, _ := statement.KeyOf(stmt, one.model.Schema, one.place)
		one.committed, one.known = version, first[is] == nil || !first[is].differs(version)
		if key == nil && one.model.Column.ZeroIsLoaded() {
			one.known = false // no row has its version
		}
		if key != nil && !one.known && first[is].read {
			c.read[is], unsure[one.model] = true, append(unsure[one.model], key)
		}
	}
	for m, keys := range unsure {
		if wroteAny(stmt, m, keys) {
			continue
		}
		for i := range c.held { // their versions were committed, wherever these were read
			if is := rowIn(m, c.held[i].place); c.held[i].model == m && c.read[is] {
				c.held[i].known = true
			}
		}
		maps.DeleteFunc(c.read, func(is rowOf, _ bool) bool { return is.of == m.Schema.ModelType })
	}
	for i := range c.held {
		c.held[i].mayBeRead = len(c.read) > 0 && c.read[rowIn(c.held[i].model, c.held[i].place)]
	}
}

// wroteAny reports whether the transaction itself may have written one of the rows. It asks the server.
func wroteAny(stmt *gorm.Statement, m *model.Model, keys [][]any) bool {
	const most = 30_000 // a statement can name no more
	if len(keys)*len(m.Schema.PrimaryFields) > most {
		return true
	}
	wrote, known := journal.WroteAny(stmt, func(q *gorm.DB) *gorm.DB {
		column, values := schema.ToQueryValues(clause.CurrentTable, m.Schema.PrimaryFieldDBNames, keys)
		return q.Model(reflect.New(m.Schema.ModelType).Interface()).Where(clause.IN{Column: column, Values: values})
	})
	return wrote || !known
}

// AfterEnd runs when a statement has ended. It looks at what GORM may have left in the structs of an association, or is about to copy.
func AfterEnd(db *gorm.DB) {
	hideFromCopies(db)
	hideCopied(db)
	noteFailedAppend(db)
	noteFailedCall(db)
	doomAppendedMap(db)
	doomHalfway(db)
}

// hideCopied hides the versions of the children that an Append has stored and that GORM is about to copy to the caller. If there are several
// parents, it does so after the last one's statement.
func hideCopied(db *gorm.DB) {
	stmt := db.Statement
	j := journal.Of(stmt)
	if j == nil || !model.NeedsJournal(db, stmt.Schema) {
		return
	}
	if marked, _ := stmt.Settings.Load(copiedSetting); marked != any(stmt) {
		return
	}
	h, o := &hidden{call: db.Config}, newOwner(ownersIn(stmt, stmt.ReflectValue))
	first := firstStatesOf(stmt)
	EachHeld(o.structs, o.count) // in the owners' other associations too
	for _, one := range copiesIn(stmt).held {
		v, has := veilOf(one.model, one.place)
		if state, touched := first[rowIn(one.model, one.place)]; has && touched && state.differs(v.is) {
			v.seems = state.inSight(&v)
			h.all = append(h.all, v)
			o.add(v)
		}
	}
	h.owners = append(h.owners, o)
	j.Has(func(step journal.Step) bool {
		if before, is := step.(*hidden); is && before.call == h.call {
			h.all, h.owners = append(h.all, before.all...), append(h.owners, before.owners...)
		}
		return false
	})
	if len(h.all) > 0 {
		h.hideUntilNext(stmt)
	}
}

// savedRelation returns the relation that Association(…).Append or Replace saves: GORM selects it first. It is nil if all
// relations are saved.
func savedRelation(stmt *gorm.Statement) *schema.Relationship {
	if len(stmt.Selects) == 0 {
		return nil
	}
	return stmt.Schema.Relationships.Relations[stmt.Selects[0]]
}

// IsHeldByValue reports whether the field of a relation holds structs, and not pointers to those of the caller.
func IsHeldByValue(relation *schema.Relationship) bool {
	held := relation.Field.IndirectFieldType
	if held.Kind() == reflect.Slice || held.Kind() == reflect.Array {
		return held.Elem().Kind() == reflect.Struct
	}
	return relation.Field.FieldType.Kind() == reflect.Struct
}

// IsCopied reports whether GORM copies a struct to the caller after the statement that saves it. A rollback does not reach the copy.
func IsCopied(stmt *gorm.Statement, row reflect.Value) (copied bool) {
	marked, _ := stmt.Settings.Load(copiedSetting)
	owner, _ := marked.(*gorm.Statement)
	if owner == nil || !row.CanAddr() {
		return false
	}
	at := row.Addr().Pointer()
	eachCopied(owner, func(_ *schema.Relationship, place reflect.Value) {
		from, size := place.Addr().Pointer(), place.Type().Size()
		if place.Kind() == reflect.Slice {
			from, size = place.Pointer(), place.Type().Elem().Size()*uintptr(place.Len())
		}
		copied = copied || at >= from && at < from+size
	})
	return copied
}

// eachCopied visits the structs that the owner in an Append or a Replace holds by value and that GORM copies.
func eachCopied(stmt *gorm.Statement, visit func(*schema.Relationship, reflect.Value)) {
	relations := []*schema.Relationship{savedRelation(stmt)}
	if relations[0] == nil {
		relations = statement.OwnRelations(stmt.Schema)
	}
	for _, relation := range relations {
		if !IsHeldByValue(relation) {
			continue
		}
		statement.EachStruct(stmt.ReflectValue, func(owner reflect.Value) {
			if place := reflect.Indirect(statement.Place(relation.Field, owner)); place.CanAddr() {
				visit(relation, place)
			}
		})
	}
}
