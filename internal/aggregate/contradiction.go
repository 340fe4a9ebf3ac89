package aggregate

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// BeforeAssociations refuses a statement if its parts name one root by the foreign key and hold the struct of another one. GORM
// is about to set the foreign key to the key of that struct. So the foreign key that the caller has set would be lost without an
// error.
func BeforeAssociations(db *gorm.DB) {
	m := model.Of(db)
	if db.Error != nil || db.DryRun || m == nil || m.Err != nil || len(m.Roots) == 0 {
		return
	}
	p := newPart(db, m)
	isSaved := statement.Saving(db.Statement)
	for _, relation := range m.Roots {
		p.noteUnread(relation)
		if !isSaved(relation) {
			continue // GORM does not change it
		}
		if err := p.contradiction(relation); err != nil {
			fault.Add(db, err)
			return
		}
	}
}

// contradiction returns the error for parts that name one root and hold another.
func (p *part) contradiction(relation *schema.Relationship) (err error) {
	stmt := p.db.Statement
	if err := p.contradictionInValues(relation); err != nil {
		return err
	}
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if err == nil && row.Type() == p.model.Schema.ModelType {
			err = p.contradictionIn(relation, row)
		}
	})
	return err
}

func (p *part) contradictionIn(relation *schema.Relationship, row reflect.Value) error {
	holds := p.heldKey(relation, row)
	if !row.CanAddr() && held(relation, row).IsValid() {
		return fmt.Errorf("gormlock: %s.%s: GORM cannot save the association of a struct that is not given by pointer: give a pointer, or use Omit(%q)", p.model.Schema.Name, relation.Name, relation.Name)
	}
	if holds == nil {
		return nil
	}
	if values, is := p.db.Statement.Dest.(map[string]any); is {
		for _, ref := range relation.References {
			if value, named := statement.Named(values, ref.ForeignKey); named && !isKeyPart(relation, holds, ref, value) {
				return p.contradicts(relation, holds)
			}
		}
	}
	foreign, key := p.foreignOf(relation, row), p.keyOf(row)
	switch {
	case foreign != nil && p.isSame(relation, holds, foreign):
		return nil
	case foreign != nil && p.completes(relation, row, holds):
		foreign = nil
	}
	switch {
	case foreign == nil && key == nil:
		return nil
	case key == nil:
		return p.contradicts(relation, holds)
	}
	found, err := p.read(true, false, guard.KeyIn(p.model.Schema, [][]any{key}))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		if foreign != nil && slices.Contains(p.db.Statement.BuildClauses, "VALUES") {
			return p.contradicts(relation, holds)
		}
		return nil
	}
	stored := p.foreignOf(relation, found[0])
	stale, intent := p.isStale(row, found[0]), asked.Of(p.db.Statement)
	switch {
	case stale && intent != nil && (intent.Ignore || intent.Expects):
		return p.contradicts(relation, holds) // the row does not show with which root the part was read
	case stale:
		return nil // the error for the part itself says that it is stale
	case foreign == nil && (stored == nil || !p.isSame(relation, holds, stored) || !statement.InSave()),
		foreign != nil && stored != nil && p.isSame(relation, foreign, stored):
		return nil // the root that it holds decides
	}
	return p.contradicts(relation, holds)
}

// isStale reports whether a row has been written since its struct was read.
func (p *part) isStale(row, stored reflect.Value) bool {
	version := p.model.Column
	if version == nil || version.IsSystem() {
		return false
	}
	held := version.Read(row)
	return version.Loaded(held) && !version.Read(stored).Equal(held)
}

// heldKey returns the key of the root that a struct holds, or nil if it holds none or a new one.
func (p *part) heldKey(relation *schema.Relationship, row reflect.Value) []any {
	place := held(relation, row)
	if !place.IsValid() {
		return nil
	}
	key, whole := statement.KeyOf(p.db.Statement, relation.FieldSchema, place)
	if !whole && len(key) < 2 {
		return nil
	}
	return key
}

// isKeyPart reports whether a value is that part of a key.
func isKeyPart(relation *schema.Relationship, key []any, ref *schema.Reference, value any) bool {
	part := key[slices.Index(relation.FieldSchema.PrimaryFields, ref.PrimaryKey)]
	return plain(value) != nil && statement.KeyName([]any{plain(value)}) == statement.KeyName([]any{part})
}

func (p *part) contradicts(relation *schema.Relationship, holds []any) error {
	s := relation.FieldSchema
	return fmt.Errorf("gormlock: %s.%s holds %s, and the foreign key names another row, which GORM would overwrite: set %s too, or set it to nil, or use Omit(%q)",
		p.model.Schema.Name, relation.Name, fault.Row(s.Table, s.PrimaryFieldDBNames, keyMap(s, holds)), relation.Name, relation.Name)
}

// contradictionInValues returns the error of an update whose values hold a root that the rows do not get: GORM ignores
// associations in values.
func (p *part) contradictionInValues(relation *schema.Relationship) error {
	dest, form := p.values()
	if form == nil || slices.Contains(p.db.Statement.BuildClauses, "VALUES") {
		return nil
	}
	own := form.Relationships.Relations[relation.Name]
	if own == nil || own.FieldSchema != relation.FieldSchema || !held(own, dest).IsValid() {
		return nil
	}
	holds, keyed := p.heldKey(own, dest), dest
	if form.ModelType == p.model.Schema.ModelType {
		keyed = p.keyedBy(relation, dest)
	}
	if keyed.Type() == p.model.Schema.ModelType && holds != nil {
		if foreign := p.foreignOf(relation, keyed); foreign != nil && p.isSame(relation, holds, foreign) {
			return nil
		}
	}
	return fmt.Errorf("gormlock: %s.%s: GORM ignores an association in the values of an update: set the foreign key too, or set %s in the struct of Model",
		p.model.Schema.Name, relation.Name, relation.Name)
}

const unreadSetting = "gormlock:unread_roots"

// noteUnread remembers the roots that structs hold without a version, although they hold more than a key. It is called
// before GORM saves the roots, because a new one has a version afterwards.
func (p *part) noteUnread(relation *schema.Relationship) {
	stmt := p.db.Statement
	m := model.OfSchema(p.db, relation.FieldSchema)
	if m.Column == nil {
		return
	}
	note := func(row reflect.Value) {
		if row.Type() != p.model.Schema.ModelType {
			return
		}
		place := held(relation, row)
		if !place.IsValid() || !place.CanAddr() || m.Column.Loaded(m.Column.Read(place)) || !p.hasContent(m, place) && !m.Column.IsUnread(m.Column.Read(place)) {
			return
		}
		if key, _ := statement.KeyOf(stmt, relation.FieldSchema, place); key == nil {
			return // GORM is about to create it
		}
		all, _ := stmt.Settings.LoadOrStore(unreadSetting, map[uintptr]bool{})
		all.(map[uintptr]bool)[place.Addr().Pointer()] = true //nolint:forcetypeassert // stored above
	}
	statement.EachStruct(stmt.ReflectValue, note)
	if dest, form := p.values(); form != nil {
		note(dest)
	}
}

// isUnread reports whether a root without a version holds more than a key. Then it was not read.
func (p *part) isUnread(m *model.Model, place reflect.Value) bool {
	if p.deletes || !place.CanAddr() {
		return p.hasContent(m, place) || m.Column.IsUnread(m.Column.Read(place))
	}
	value, _ := p.db.Statement.Settings.Load(unreadSetting)
	noted, _ := value.(map[uintptr]bool)
	return noted[place.Addr().Pointer()]
}

// hasContent reports whether a struct holds more than its key and its version, and what GORM sets by itself.
func (p *part) hasContent(m *model.Model, row reflect.Value) bool {
	for _, field := range m.Schema.FieldsByDBName {
		if field.PrimaryKey || field == m.Column.Field || field.AutoCreateTime > 0 || field.AutoUpdateTime > 0 || field.HasDefaultValue {
			continue
		}
		if _, zero := field.ValueOf(p.db.Statement.Context, row); !zero {
			return true
		}
	}
	return false
}
