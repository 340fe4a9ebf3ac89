package invariants

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm/schema"
)

// held is a struct in a writer's hands.
type held struct {
	name    string
	shape   *shape
	ptr     any            // to the struct
	read    int64          // the change that made the row what the struct has read; 0: it has read none
	before  any            // a copy of the struct as it was handed to the statement
	mine    map[string]any // what the caller has set, by field
	created bool           // the statement is to store it as a new row
}

func (h *held) row() reflect.Value { return reflect.ValueOf(h.ptr).Elem() }

// keep copies the struct as it is now.
func (h *held) keep() { h.before = deepCopy(reflect.ValueOf(h.ptr)).Interface() }

// assign is what a program does that sets a field.
func (h *held) assign(field string, value any) {
	if err := h.shape.schema.LookUpField(field).Set(context.Background(), h.row(), value); err != nil {
		panic(err)
	}
	if h.mine == nil {
		h.mine = map[string]any{}
	}
	h.mine[field] = value
}

// changed names the fields that differ from the copy.
func (h *held) changed() []string {
	was, is := reflect.ValueOf(h.before).Elem(), h.row()
	var names []string
	for _, f := range h.shape.schema.Fields {
		a, _ := f.ValueOf(context.Background(), was)
		b, _ := f.ValueOf(context.Background(), is)
		if !reflect.DeepEqual(a, b) {
			names = append(names, fmt.Sprintf("%s was %s and is %s", f.Name, show(a), show(b)))
		}
	}
	if len(names) == 0 && !reflect.DeepEqual(h.before, h.ptr) {
		names = append(names, "what belongs to it")
	}
	return names
}

// differs names the columns of the struct that are neither as in the row nor as the caller had them.
func (h *held) differs(row any) []string {
	var names []string
	for _, f := range h.shape.schema.Fields {
		if f.DBName == "" || !f.Readable || !f.Updatable || f == h.shape.version || f.PrimaryKey {
			continue // no write through the struct changes it
		}
		mine, _ := f.ValueOf(context.Background(), h.row())
		stored, _ := f.ValueOf(context.Background(), reflect.ValueOf(row).Elem())
		set, assigned := h.mine[f.Name]
		if equalColumns(f, mine, stored) || assigned && equalColumns(f, mine, set) {
			continue
		}
		names = append(names, fmt.Sprintf("%s is %s, the row has %s", f.Name, show(mine), show(stored)))
	}
	return names
}

// equalColumns compares as the server stores: times to the microsecond.
func equalColumns(_ *schema.Field, a, b any) bool {
	a, b = stored(a), stored(b)
	if x, ok := a.(time.Time); ok {
		y, ok := b.(time.Time)
		return ok && x.Sub(y).Abs() <= time.Microsecond
	}
	return reflect.DeepEqual(a, b)
}

func stored(value any) any {
	if v, ok := value.(driver.Valuer); ok {
		if rv := reflect.ValueOf(value); rv.Kind() == reflect.Pointer && rv.IsNil() {
			return nil
		}
		value, _ = v.Value()
	}
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
	if s, ok := v.Interface().(string); ok {
		return strings.TrimRight(s, " ")
	}
	return v.Interface()
}

func show(value any) string {
	switch v := stored(value).(type) {
	case time.Time:
		return v.UTC().Format("15:04:05.999999")
	case string:
		return fmt.Sprintf("%q", v)
	default:
		return fmt.Sprint(v)
	}
}

// deepCopy copies what stands behind pointers and slices too.
func deepCopy(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		own := reflect.New(v.Type().Elem())
		own.Elem().Set(deepCopy(v.Elem()))
		return own
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			own.Index(i).Set(deepCopy(v.Index(i)))
		}
		return own
	case reflect.Struct:
		own := reflect.New(v.Type()).Elem()
		own.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type() != reflect.TypeFor[time.Time]() {
				own.Field(i).Set(deepCopy(v.Field(i)))
			}
		}
		return own
	}
	return v
}

// ledger is the structs that a writer holds.
type ledger struct {
	all []*held
}

func (l *ledger) add(name string, s *shape, ptr any, read int64) *held {
	h := &held{name: name, shape: s, ptr: ptr, read: read}
	l.all = append(l.all, h)
	return h
}

// of are the structs that stand for the row of a change.
func (l *ledger) of(c *change) []*held {
	var found []*held
	for _, h := range l.all {
		// A statement may have changed the key, of the row and of its struct.
		if h.shape.table == c.Tab && (h.shape.auditKey(h.ptr) == c.Key || h.before != nil && h.shape.auditKey(h.before) == c.Key) {
			found = append(found, h)
		}
	}
	return found
}

// readThis reports whether one of the structs had read the state that a change found.
func readThis(structs []*held, c *change) bool {
	return slices.ContainsFunc(structs, func(h *held) bool { return h.read != 0 && h.read == c.Prev })
}
