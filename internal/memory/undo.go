package memory

import (
	"reflect"

	"gorm.io/gorm/schema"
)

// Undo does the same for columns that the statement changed and nobody changed since, wherever a struct is now. A struct that stands for another
// row by now is left alone. A struct with a version that was emptied since, by Association(…).Delete or by the caller, gets all its columns back
// and counts as not read. So, whoever emptied it, no write of it can store an empty row or overwrite its old row.
func (s *Structs) Undo() {
	if s.before == nil || s.After == nil {
		return
	}
	defer func() { s.undone = true }()
	if s.Places == nil {
		s.Places = NewPlaces()
		s.Places.Add(s)
		s.Places.SeekLeft(s)
		s.Places.Find()
	}
	for i := s.Count - 1; i >= 0; i-- {
		s.undoRow(i)
	}
}

// undoRow does the same for the struct of this number.
func (s *Structs) undoRow(i int) {
	row := s.Row(i)
	others, unsure := s.elsewhere(i)
	switch alone := s.Places.alone; {
	case alone != nil && !isAt(row, alone.row): // another goroutine may use it
	case s.IsUsed(i):
	case s.standsFor(row, i) && s.model.Column != nil && s.Places.mixes(s.Type()) && s.Places.place(row).isMoved(): // it may belong to another table
		s.model.Column.Write(row, s.model.Column.Unread())
	case s.standsFor(row, i):
		if s.undoIn(row, i); s.model.Column != nil && s.wasReread(i) && s.Places.place(row).wasReadInto() {
			s.model.Column.Write(row, s.model.Column.Unread())
		}
	case s.isEmptied(i):
		s.RestoreRow(i)
		s.model.Column.Write(row, s.model.Column.Unread())
	case s.isRespelt(row, i) || s.mayBeRespelt(row, i):
		s.model.Column.Write(row, s.model.Column.Unread())
	}
	for _, other := range others {
		s.undoIn(other, i)
	}
	for n := 0; n < len(unsure) && s.model.Column != nil; n++ {
		s.model.Column.Write(unsure[n], s.model.Column.Unread())
	}
}

func isAt(row, other reflect.Value) bool {
	return row.IsValid() && row.CanAddr() && row.Addr().Pointer() == other.Addr().Pointer()
}

// undoIn undoes, in one place, what the statement did to the struct of this number. An unread struct was not necessarily left unread by the
// statement: it may be another struct, or read again since, even by a statement that is undone too. If it is not as the statement left it, it stays
// unread.
func (s *Structs) undoIn(row reflect.Value, i int) {
	another, made, copied := false, false, s.Copied || s.Places.copied[s.left(i)]
	version := s.model.Column
	stays := version != nil && !version.Loaded(version.Read(s.Of(s.After, i))) && !s.isAsLeft(row, i)
	s.each(i, func(field *schema.Field, old, left pointee) {
		made = made || field.PrimaryKey && !holds(old, left)
		if stays && field == version.Field {
			return
		}
		if now := state(field, row); !holds(old, left) && holds(now, left) && (!copied || !field.PrimaryKey) {
			put(field, row, old.behind(now, left))
			another = another || field.PrimaryKey || version != nil && field == version.Field
		}
	})
	if copied && made && version != nil && version.ZeroIsLoaded() {
		version.Write(row, version.Unread()) // with its key and 0 it would stand for a row that was read
	}
	if another {
		s.Places.found(row)
	}
	if made && s.Created {
		tookKey(s.model, row)
	}
}
