package memory

import (
	"reflect"
	"slices"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Structs is the structs of a statement, as they were before it and as it left them. They are restored field by field, because a column may be a
// pointer that GORM writes through, and fields that are not columns must stay as they are.
type Structs struct {
	In     Table // the table of their rows
	model  *model.Model
	target reflect.Value // the struct, or the slice that holds them
	Count  int

	before, After  *structCopies
	keptAt, leftAt int64   // the moments of these
	Places         *Places // of the whole transaction; nil: only the structs themselves
	Became
	undone bool
}

// Became says what happened to the structs of a statement, besides what After shows.
type Became struct {
	Guessed bool // no version was compared, so the statement may have left the version of another state of the row
	Created bool // a struct without a key got one, and a row
	Copied  bool // GORM has copied them to the caller's structs
}

// structCopies are copies of the structs at one moment.
type structCopies struct {
	structs reflect.Value // one, or a slice of them
	behind  [][]pointee   // the values behind their pointers, if the model has pointers
}

// Model is the model of the structs; nil: there are none.
func (s *Structs) Model() *model.Model { return s.model }

// Type is the type of the structs; nil: there are none.
func (s *Structs) Type() reflect.Type {
	if s.model == nil {
		return nil
	}
	return s.model.Schema.ModelType
}

// Batch reports whether the structs are in a slice.
func (s *Structs) Batch() bool {
	return s.target.Kind() == reflect.Slice || s.target.Kind() == reflect.Array
}

// Find takes the structs that value is or holds, if they are of the model, and reports whether an element is nil.
func (s *Structs) Find(m *model.Model, value any) (found, hole bool) {
	target := reflect.ValueOf(value)
	for target.Kind() == reflect.Pointer || target.Kind() == reflect.Interface {
		target = target.Elem()
	}
	count := 1
	switch target.Kind() {
	case reflect.Struct:
		if target.Type() != m.Schema.ModelType {
			return false, false
		}
	case reflect.Slice, reflect.Array:
		count = target.Len()
		if target.Kind() == reflect.Slice {
			target = target.Slice(0, count) // the caller may shorten the slice
		}
		for i := 0; i < count && target.Type().Elem() != m.Schema.ModelType; i++ {
			row := element(target, i)
			if hole = !row.IsValid(); hole || row.Type() != m.Schema.ModelType {
				return false, hole
			}
		}
	default:
		return false, false
	}
	*s = Structs{In: s.In, model: m, target: target, Count: count}
	return true, false
}

// Keep copies the structs as they are. It also makes sure that moving the version of one struct does not move that of another.
func (s *Structs) Keep() {
	for i := 0; i < s.Count && s.model.Column != nil && statement.ThroughPointer(s.model.Column.Field); i++ {
		if row := s.Row(i); row.IsValid() {
			statement.OwnPath(s.model.Column.Field, row)
		}
	}
	s.before, s.keptAt = s.copies(), journal.Moment()
}

// Row is the struct with this number.
func (s *Structs) Row(i int) reflect.Value {
	if !s.Batch() {
		return s.target
	}
	return element(s.target, i)
}

func element(list reflect.Value, i int) reflect.Value {
	row := list.Index(i)
	for row.Kind() == reflect.Pointer || row.Kind() == reflect.Interface {
		row = row.Elem()
	}
	return row
}

// copies returns copies of all structs. It returns none for a struct that was passed by value, because memory cannot follow it.
func (s *Structs) copies() *structCopies {
	if s.Count == 0 || !s.Row(0).CanAddr() {
		return nil
	}
	var all reflect.Value
	switch {
	case !s.Batch():
		all = reflect.New(s.model.Schema.ModelType).Elem()
		all.Set(s.target)
	case s.target.Type().Elem() == s.model.Schema.ModelType:
		all = reflect.MakeSlice(reflect.SliceOf(s.model.Schema.ModelType), s.Count, s.Count)
		reflect.Copy(all, s.target)
	default:
		all = reflect.MakeSlice(reflect.SliceOf(s.model.Schema.ModelType), s.Count, s.Count)
		for i := range s.Count {
			all.Index(i).Set(s.Row(i))
		}
	}
	copies := &structCopies{structs: all}
	if len(s.model.Indirect) == 0 {
		return copies
	}
	copies.behind = make([][]pointee, s.Count)
	for i := range copies.behind {
		copies.behind[i] = pointees(s.model, s.Row(i))
		if s.model.Column != nil {
			statement.OwnPath(s.model.Column.Field, s.Of(copies, i)) // live structs share what is embedded by a pointer
		}
		for _, key := range s.model.Schema.PrimaryFields {
			statement.OwnPath(key, s.Of(copies, i))
		}
	}
	return copies
}

// Was is the struct with this number before the statement; invalid if that is not known.
func (s *Structs) Was(i int) reflect.Value { return s.Of(s.before, i) }

// Of returns the struct with this number among copies; invalid if there are none.
func (s *Structs) Of(copies *structCopies, i int) reflect.Value {
	switch {
	case copies == nil:
		return reflect.Value{}
	case s.Batch():
		return copies.structs.Index(i)
	}
	return copies.structs
}

// Leave keeps the structs as the statement left them.
func (s *Structs) Leave() {
	s.After, s.leftAt = s.copies(), journal.Moment()
	s.ownPointers()
}

// Here returns only the places of the structs.
func (s *Structs) Here() *Structs {
	here := &Structs{In: s.In, model: s.model, target: s.target, Count: s.Count}
	here.ownPointers()
	return here
}

// ownPointers keeps the pointers to the structs, because the caller may replace or remove them in its slice or array.
func (s *Structs) ownPointers() {
	if s.Batch() && s.target.Type().Elem() != s.model.Schema.ModelType && s.Count > 0 {
		own := reflect.MakeSlice(reflect.SliceOf(s.target.Type().Elem()), s.Count, s.Count)
		for i := range s.Count { // reflect.Copy follows the pointer in an array of one
			own.Index(i).Set(s.target.Index(i))
		}
		s.target = own
	}
}

// Restore sets the columns of all structs to their values before the statement.
func (s *Structs) Restore() {
	for i := s.Count - 1; i >= 0; i-- {
		s.RestoreRow(i)
	}
}

// RestoreRow sets the columns of one struct to their values before the statement.
func (s *Structs) RestoreRow(i int) {
	if s.before == nil {
		return
	}
	row, keyed := s.Row(i), s.Created && !isUnkeyed(s.model.Schema, s.Row(i))
	s.each(i, func(field *schema.Field, old pointee, _ pointee) { put(field, row, old) })
	if keyed {
		tookKey(s.model, row)
	}
}

// Changed reports whether the statement changed a column of this struct.
func (s *Structs) Changed(i int) bool {
	if s.before == nil || s.After == nil {
		return false
	}
	changed := false
	s.each(i, func(_ *schema.Field, old, left pointee) { changed = changed || !holds(old, left) })
	return changed
}

// Differs reports whether a column of this struct differs from its value before the statement.
func (s *Structs) Differs(i int, column *schema.Field) bool {
	if s.before == nil {
		return false
	}
	differs := false
	s.each(i, func(field *schema.Field, old, _ pointee) {
		differs = differs || field == column && !holds(old, state(field, s.Row(i)))
	})
	return differs
}

// each visits the columns of a struct, with their values before the statement and after it.
func (s *Structs) each(i int, visit func(field *schema.Field, old, left pointee)) {
	for n, field := range s.model.Indirect {
		var left pointee
		if s.After != nil {
			left = s.After.behind[i][n]
		}
		visit(field, s.before.behind[i][n], left)
	}
	before, after := s.Was(i), s.Of(s.After, i)
	for _, field := range s.model.Schema.FieldsByDBName {
		if field.FieldType.Kind() == reflect.Pointer || statement.ThroughPointer(field) {
			continue
		}
		var left pointee
		if after.IsValid() {
			left.value = statement.Place(field, after).Interface()
		}
		visit(field, pointee{value: statement.Place(field, before).Interface()}, left)
	}
}

// standsFor reports whether row has the key that the struct of this number has after the statement.
func (s *Structs) standsFor(row reflect.Value, i int) bool {
	return KeyOf(s.model.Schema, row) == KeyOf(s.model.Schema, s.Of(s.After, i))
}

// namesNone reports whether the struct of this number stood for no row: it only names the model, and GORM has put the values into it.
func (s *Structs) namesNone(i int) bool {
	was := s.Was(i)
	return !s.Created && was.IsValid() && !slices.ContainsFunc(s.model.Schema.PrimaryFields, func(field *schema.Field) bool {
		place := statement.Place(field, was)
		return place.IsValid() && !place.IsZero()
	})
}

// isEmptied reports whether all columns of a versioned struct are zero although it had a key before the statement.
func (s *Structs) isEmptied(i int) bool {
	row := s.Row(i)
	if s.model.Column == nil {
		return false
	}
	keyed, empty := false, true
	s.each(i, func(field *schema.Field, old, _ pointee) {
		place := statement.Place(field, row)
		empty = empty && (!place.IsValid() || place.IsZero())
		keyed = keyed || field.PrimaryKey && old.value != nil && !reflect.ValueOf(old.value).IsZero()
	})
	return keyed && empty
}
