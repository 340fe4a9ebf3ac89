package aggregate

import (
	"database/sql/driver"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// part is a statement that writes rows of a model with a root.
type part struct {
	db    *gorm.DB
	model *model.Model
	gathered
	bound
	held     []holding // the structs of roots that parts hold
	seen     *guard.Observation
	answer   // what is known of the rows before the write
	deletes  bool
	keeps    bool // an upsert that leaves existing rows as they are
	written  bool // the statement was executed
	late     bool // which rows are written is only known afterwards; their roots move then
	unscoped bool // the roots of soft-deleted parts may be soft-deleted too
}

// gathered are the roots whose versions are to move.
type gathered struct {
	found []*root
	named []*root         // those whose rows the statement itself may write
	done  map[string]bool // those that were found, by name
}

// bound are the structs of the statement by the names of their rows, each found when it is asked for first.
type bound struct {
	keyed      map[string]bool            // before the statement
	structured map[string][]reflect.Value // after it
}

// answer is what the server said about the rows that a statement will write.
type answer struct {
	there    []reflect.Value // the rows that were found and locked: their keys and those of their roots
	absent   [][]any         // keys of an upsert that do not exist
	narrowed bool            // the statement writes only the rows in there
	where    clause.Clause   // the WHERE clause before
}

func newPart(db *gorm.DB, m *model.Model) *part {
	return &part{db: db, model: m, gathered: gathered{done: map[string]bool{}}}
}

// add adds the root with the key that foreign returns, for each field of the child. A key with a NULL names no root, and
// neither does one of only zeros in fields that cannot be NULL. If one of several such fields is zero, the key may be that of a root or of none.
func (p *part) add(relation *schema.Relationship, foreign func(*schema.Field) any) {
	key := make([]any, len(relation.FieldSchema.PrimaryFields))
	some, all := false, true
	for _, ref := range relation.References {
		value := plain(foreign(ref.ForeignKey))
		if value == nil || value == any(leftToServer{}) {
			return
		}
		is := !reflect.ValueOf(value).IsZero() || mayBeNull(ref.ForeignKey)
		some, all = some || is, all && is
		key[slices.Index(relation.FieldSchema.PrimaryFields, ref.PrimaryKey)] = value
	}
	if !some {
		return
	}
	name := nameOf(relation.FieldSchema, key)
	if !p.done[name] {
		p.found, p.done[name] = append(p.found, &root{schema: relation.FieldSchema, key: key, name: name, perhaps: !all}), true
	}
}

// mayBeNull reports whether a field can hold NULL, so its zero is a key.
func mayBeNull(field *schema.Field) bool {
	return plain(reflect.Zero(field.FieldType).Interface()) == nil
}

// plain returns a value without pointers around it, or nil for NULL.
func plain(value any) any {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil
	}
	if valuer, is := v.Interface().(driver.Valuer); is {
		if inner, err := valuer.Value(); err == nil && inner == nil {
			return nil
		}
	}
	return v.Interface()
}

// addOf adds the roots of a row.
func (p *part) addOf(row reflect.Value) {
	for _, relation := range p.model.Roots {
		p.addBy(relation, row)
	}
}

func (p *part) addBy(relation *schema.Relationship, row reflect.Value) {
	p.add(relation, func(field *schema.Field) any {
		value, _ := field.ValueOf(p.db.Statement.Context, row)
		return value
	})
}

func keyMap(s *schema.Schema, key []any) map[string]any {
	named := map[string]any{}
	for i, field := range s.PrimaryFields {
		named[field.DBName] = key[i]
	}
	return named
}

// foreignOf returns the key of the root in a row of the model, in the order of the root's fields, or nil if a part of it
// is NULL.
func (p *part) foreignOf(relation *schema.Relationship, row reflect.Value) []any {
	key, some := make([]any, len(relation.FieldSchema.PrimaryFields)), false
	for _, ref := range relation.References {
		value, zero := ref.ForeignKey.ValueOf(p.db.Statement.Context, row)
		if value = plain(value); value == nil {
			return nil
		}
		some = some || !zero
		key[slices.Index(relation.FieldSchema.PrimaryFields, ref.PrimaryKey)] = value
	}
	if !some {
		return nil
	}
	return key
}

// completes reports whether the foreign key of a row lacks a part, and its other parts are those of the key.
func (p *part) completes(relation *schema.Relationship, row reflect.Value, key []any) bool {
	lacks := false
	for _, ref := range relation.References {
		value, zero := ref.ForeignKey.ValueOf(p.db.Statement.Context, row)
		if !zero && !isKeyPart(relation, key, ref, value) {
			return false
		}
		lacks = lacks || zero
	}
	return lacks
}

// isSame reports whether two keys name the same root. It asks the server if they may be two spellings of one key.
func (p *part) isSame(relation *schema.Relationship, key, other []any) bool {
	if statement.KeyName(key) == statement.KeyName(other) {
		return true
	}
	if !slices.ContainsFunc(relation.FieldSchema.PrimaryFields, func(f *schema.Field) bool { return !isInteger(f) }) {
		return false
	}
	beside := p.db.Session(&gorm.Session{NewDB: true}).Model(reflect.New(relation.FieldSchema.ModelType).Interface())
	beside.Statement.Table = relation.FieldSchema.Table
	stored, err := statement.Stored(beside, relation.FieldSchema, [][]any{key, other})
	return err == nil && stored[0] != nil && stored[1] != nil && statement.KeyName(stored[0]) == statement.KeyName(stored[1])
}

func isInteger(field *schema.Field) bool {
	return field.DataType == schema.Int || field.DataType == schema.Uint
}

// keys returns the keys of the structs of the model in value.
func (p *part) keys(value reflect.Value) [][]any {
	var keys [][]any
	statement.EachStruct(value, func(row reflect.Value) {
		if row.Type() != p.model.Schema.ModelType {
			return
		}
		if key, _ := statement.KeyOf(p.db.Statement, p.model.Schema, row); key != nil {
			keys = append(keys, key)
		}
	})
	return keys
}

// foreignKeys are the fields that hold the keys of roots.
func (p *part) foreignKeys() (keys []*schema.Field) {
	for _, relation := range p.model.Roots {
		for _, ref := range relation.References {
			if !slices.Contains(keys, ref.ForeignKey) {
				keys = append(keys, ref.ForeignKey)
			}
		}
	}
	return keys
}
