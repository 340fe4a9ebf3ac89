package asked

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/absent"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
)

// Unchanged is what IfUnchanged compares: columns, with the values that a struct held.
type Unchanged struct {
	Before  reflect.Value
	Names   []string
	Columns []*schema.Field
	All     bool // the caller names none
}

var errTwoUnchanged = errors.New("gormlock: a statement has two clauses IfUnchanged: name all columns in one")

// IfUnchanged keeps the values of the columns in before.
func IfUnchanged(before any, names []string) (*Unchanged, error) {
	row := reflect.ValueOf(before)
	if row.Kind() != reflect.Pointer || row.IsNil() || row.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("gormlock: IfUnchanged takes a pointer to the struct as it was read, not %s", absent.Type(before))
	}
	if memory.IsStray(row.Elem()) {
		return nil, fmt.Errorf("gormlock: IfUnchanged: %T was written or read in a transaction that its context has ended: read it again: %w", before, fault.Because(fault.ErrVersionMissing))
	}
	// Keep the values of this moment: the caller may change the struct later, and GORM writes through its pointers.
	kept := reflect.New(row.Elem().Type()).Elem()
	kept.Set(memory.Own(row.Elem()))
	return &Unchanged{Before: kept, Names: names}, nil
}

// same reports whether both compare the same. They can be equal, because a scope may run twice.
func (u *Unchanged) same(other *Unchanged) bool {
	return u == other || slices.Equal(inOrder(u.Names), inOrder(other.Names)) && u.Before.Type() == other.Before.Type() && reflect.DeepEqual(u.Before.Interface(), other.Before.Interface())
}

func inOrder(names []string) []string {
	ordered := make([]string, len(names))
	for i, name := range names {
		ordered[i] = strings.ToLower(name)
	}
	slices.Sort(ordered)
	return ordered
}

// of finds the columns in the model.
func (u *Unchanged) of(m *model.Model) (*Unchanged, error) {
	if u.Before.Type() != m.Schema.ModelType {
		return nil, fmt.Errorf("gormlock: IfUnchanged: %s is not the model %s", u.Before.Type(), m.Schema.Name)
	}
	found := &Unchanged{Before: u.Before, All: len(u.Names) == 0}
	names := u.Names
	if found.All {
		names = m.Schema.DBNames
	}
	for _, name := range names {
		field := m.Schema.LookUpField(name)
		switch {
		case field == nil || field.DBName == "":
			return nil, fmt.Errorf("gormlock: IfUnchanged: %s has no column %q", m.Schema.Name, name)
		case !field.Readable && found.All:
			continue
		case !field.Readable:
			return nil, fmt.Errorf("gormlock: IfUnchanged: %s.%s cannot be compared: its tag keeps GORM from reading the column", m.Schema.Name, field.Name)
		}
		found.Columns = append(found.Columns, field)
		found.Names = append(found.Names, field.DBName)
	}
	return found, nil
}
