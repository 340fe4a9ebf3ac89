package children

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Rekeyed is a struct that has one key and gets another one.
type Rekeyed struct {
	before, after []any
	read, isNew   bool // what the struct shows
	updates       bool // the statement creates no row, so the struct stands for one that is there
	hooked        bool // a hook of the caller's may have completed the key of a struct that no query has filled
}

// KeyOf notes the key that a struct has before it gets another one.
func KeyOf(m *model.Model, row reflect.Value, key []any) Rekeyed {
	r := Rekeyed{before: key}
	r.read, r.isNew = m.Shows(row)
	return r
}

// Hooked notes that a hook may have given the other key.
func (r Rekeyed) Hooked() Rekeyed {
	r.hooked = true
	return r
}

// To notes the key that the struct gets by a statement.
func (r Rekeyed) To(stmt *gorm.Statement, key []any) Rekeyed {
	r.after = key
	r.updates = !slices.Contains(stmt.BuildClauses, "VALUES") && !statement.InSave()
	return r
}

// Before is the key that the struct had.
func (r Rekeyed) Before() []any { return r.before }

// filled is the key before, with the parts of the other one where it has zeros.
func (r Rekeyed) filled() []any {
	key := slices.Clone(r.before)
	for n, part := range key {
		if v := reflect.ValueOf(part); !v.IsValid() || v.IsZero() {
			key[n] = r.after[n]
		}
	}
	return key
}

// Becomes returns which of these structs would be another row with its new key, or -1. The server is asked, because two keys may be two spellings of
// one, and because a struct that gets a part of its key, and does not show whether it was read, is a new one only if it can be no row.
func Becomes(db *gorm.DB, s *schema.Schema, all ...Rekeyed) (int, error) {
	var keys [][]any
	var asked []int
	for i, r := range all {
		after := statement.KeyName(r.after)
		if statement.KeyName(r.before) != after && (!r.isNew || statement.KeyName(r.filled()) != after) {
			keys, asked = append(keys, r.before, r.filled(), r.after), append(asked, i)
		}
	}
	if len(asked) == 0 {
		return -1, nil
	}
	stored, err := statement.Stored(db, s, keys)
	if err != nil {
		return -1, err
	}
	for n, i := range asked {
		if all[i].becomes(stored[3*n], stored[3*n+1], stored[3*n+2]) {
			return i, nil
		}
	}
	return -1, nil
}

// becomes reports whether the struct would be another row. The keys are as the server stores them: the one before, that with its zeros filled in, and the
// one after. Nil: there is no such row.
func (r Rekeyed) becomes(had, filled, gets []any) bool {
	same := func(a, b []any) bool {
		return a == nil && b == nil || a != nil && b != nil && statement.KeyName(a) == statement.KeyName(b)
	}
	switch {
	case same(had, gets):
		return false
	case statement.KeyName(r.filled()) != statement.KeyName(r.after) && !same(filled, gets):
		return true
	case r.isNew, had == nil && (!r.read || r.hooked):
		return false
	}
	return r.read || gets != nil || r.updates
}

// doubts are the children of one relation that get a part of their key that was zero.
type doubts map[*schema.Relationship][]Rekeyed

// add notes a child that gets a part of its key from its parent. A new parent's children have no rows yet, so they need not be asked for.
func (d doubts) add(stmt *gorm.Statement, relation *schema.Relationship, parent, child reflect.Value, of *model.Model) {
	var before, after []any
	for _, field := range relation.FieldSchema.PrimaryFields {
		part, _ := field.ValueOf(stmt.Context, child)
		before, after = append(before, part), append(after, part)
		for _, ref := range relation.References {
			if ref.ForeignKey == field && ref.OwnPrimaryKey {
				after[len(after)-1], _ = ref.PrimaryKey.ValueOf(stmt.Context, parent)
			}
		}
	}
	one := KeyOf(of, child, before)
	one.after = after
	if _, upserts := stmt.Clauses["ON CONFLICT"]; one.read || upserts || !slices.Contains(stmt.BuildClauses, "VALUES") {
		d[relation] = append(d[relation], one)
	}
}

// judge returns the error of a child that would be another row.
func (d doubts) judge(stmt *gorm.Statement) error {
	for relation, all := range d {
		beside := stmt.DB.Session(&gorm.Session{NewDB: true}).Model(reflect.New(relation.FieldSchema.ModelType).Interface())
		beside.Statement.Table = relation.FieldSchema.Table
		became, err := Becomes(beside, relation.FieldSchema, all...)
		if err != nil || became < 0 {
			return err
		}
		for _, ref := range relation.References {
			if ref.OwnPrimaryKey && ref.ForeignKey.PrimaryKey {
				return errOfAnother(stmt, relation, ref.ForeignKey)
			}
		}
	}
	return nil
}

// errOfAnother is the error of a child with a foreign key of another parent, which is a part of its key.
func errOfAnother(stmt *gorm.Statement, relation *schema.Relationship, part *schema.Field) error {
	return fmt.Errorf("gormlock: %s.%s: %s of a %s is a part of its key, and that of another parent's: delete it there and create a new one here. If the struct is a new one, set %s",
		stmt.Schema.Name, relation.Name, part.Name, relation.FieldSchema.Name, part.Name)
}
