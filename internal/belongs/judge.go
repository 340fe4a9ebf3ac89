package belongs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// judge decides for each association whether the caller assigned it. If its key equals the foreign key, it was only read. If they
// differ, one of the two was assigned after reading. If the row is still at the version that the struct was read at, it shows which.
func (w *writing) judge() error {
	var doubtful []*holding
	for _, h := range w.held {
		if _, is := w.own[h.relation.Name]; is {
			h.explicit = true
		}
		if h.fits = statement.Refers(h.relation, h.row, h.place); h.fits && statement.HasKeyOfOther(h.relation, h.place) {
			continue
		}
		h.key = statement.LinkOf(h.relation, h.row)
		_, all, same := w.names(h)
		switch {
		case !h.saved && (!h.direct || w.from != itself):
		case !statement.HasKeyOfOther(h.relation, h.place):
			h.assigned = true // GORM creates it
		case w.from == form:
			h.stale = true // AfterWrite looks whether the form writes the foreign key
		case h.explicit && !h.selected, all && same, h.saved && h.namesNone(), w.isLeft(h), w.isGiven(h):
			h.assigned = true
		default:
			doubtful = append(doubtful, h)
		}
	}
	if len(doubtful) > 0 {
		if err := w.observe(doubtful); err != nil {
			return err
		}
	}
	for _, h := range w.held {
		if some, _, same := w.names(h); h.assigned && some && !same {
			return w.contradicts(h)
		}
	}
	if w.from == named && w.db.Statement.ReflectValue.Kind() != reflect.Struct {
		return w.mustAgree()
	}
	return nil
}

// names reports whether the caller's map has some or all parts of the foreign key, and whether they equal the key of the
// association.
func (w *writing) names(h *holding) (some, all, same bool) {
	all, same = true, true
	h.eachKey(func(key *schema.Field, ref *schema.Reference) {
		value, is := statement.Named(w.own, key)
		some, all = some || is, all && is
		if is {
			other, zero := ref.PrimaryKey.ValueOf(w.db.Statement.Context, reflect.Indirect(h.place))
			same = same && !zero && !statement.Computed(value) && statement.KeyName([]any{value}) == statement.KeyName([]any{other})
		}
	})
	return some, all, same
}

// isGiven reports whether the association was given to Association(…).Append or Replace. Then the foreign key does not matter.
func (w *writing) isGiven(h *holding) bool {
	return slices.Contains(w.db.Statement.Selects, h.relation.Name) && statement.InAssociation()
}

// isLeft reports whether a contradiction need not be resolved here: nothing is executed, or a merge or a root has already looked at the row.
func (w *writing) isLeft(h *holding) bool {
	return w.db.DryRun || asked.Of(w.db.Statement).Merges() || slices.Contains(w.model.Roots, h.relation)
}

// observe reads the rows of structs with a foreign key that differs from the association's key.
func (w *writing) observe(doubtful []*holding) error {
	var keys [][]any
	names := slices.Clone(w.model.Schema.PrimaryFieldDBNames)
	if w.model.Column.IsSystem() {
		names = append(names, w.model.Column.Field.DBName)
	}
	for _, h := range doubtful {
		if key := w.keyOf(h.row); key != nil {
			keys = append(keys, key)
		}
		h.eachKey(func(key *schema.Field, _ *schema.Reference) {
			if !slices.Contains(names, key.DBName) {
				names = append(names, key.DBName)
			}
		})
	}
	rows, err := w.rowsOf(keys, names)
	if err != nil {
		return err
	}
	for _, h := range doubtful {
		if err := w.compare(h, rows[statement.KeyName(w.keyOf(h.row))]); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf reads the rows with these keys, and returns them by the keys as the program spells them. The server may spell a key
// differently. So keys that are not found in the common query are read one by one.
func (w *writing) rowsOf(keys [][]any, names []string) (map[string]reflect.Value, error) {
	rows := map[string]reflect.Value{}
	read := func(some [][]any) ([]reflect.Value, error) {
		found, err := guard.Rows(w.db, w.model, slices.Clone(names), true, false, guard.KeyIn(w.model.Schema, some))
		if sqlstate.Of(err) == sqlstate.SerializationFailure {
			err = guard.Overtaken(w.db, w.model, guard.OpUpdate, some, err)
		}
		return found, err
	}
	for some := range slices.Chunk(keys, max(1, len(keys)/w.parts(keys))) {
		found, err := read(some)
		if err != nil {
			return nil, err
		}
		for _, row := range found {
			rows[statement.KeyName(w.keyOf(row))] = row
		}
	}
	for _, key := range keys {
		name := statement.KeyName(key)
		if rows[name].IsValid() || !slices.ContainsFunc(key, isText) {
			continue
		}
		found, err := read([][]any{key})
		if err != nil {
			return nil, err
		}
		if len(found) == 1 {
			rows[name] = found[0]
		}
	}
	return rows, nil
}

func isText(part any) bool {
	kind := reflect.ValueOf(part).Kind()
	return kind < reflect.Int || kind > reflect.Float64
}

// parts is how many statements are needed for so many keys.
func (w *writing) parts(keys [][]any) (n int) {
	for n = 1; !guard.FitIn(w.db, keys[:len(keys)/n]); {
		n *= 2
	}
	return n
}

func (w *writing) keyOf(row reflect.Value) []any {
	key, _ := statement.KeyOf(w.db.Statement, w.model.Schema, row)
	return key
}

// compare decides by the row, if the row is unchanged since the struct was read. Then the key that the row has was read, and the
// other one was assigned. If the row has changed, it cannot be known. Then the two must agree, unless the write will be refused anyway.
func (w *writing) compare(h *holding, row reflect.Value) error {
	version := w.model.Column
	held := version.Read(h.row)
	read := version.Loaded(held) && row.IsValid() && version.Read(row).Equal(held)
	link := ""
	if row.IsValid() {
		link = statement.LinkOf(h.relation, row)
	}
	switch {
	case !read && w.compares(version.Loaded(held)):
		h.assigned = true
	case !read || w.isUnversioned(h):
		return w.contradicts(h)
	case link == h.key:
		h.assigned = true
	case link == statement.KeyOfOther(h.relation, h.place) && len(w.db.Statement.Selects) == 0 && statement.InAssociation():
		return w.contradicts(h) // Append and Replace may have been given the association that the row has already
	case link == statement.KeyOfOther(h.relation, h.place):
		h.stale = true
	case h.saved:
		return w.contradicts(h)
	}
	return nil
}

// compares reports whether the statement refuses a stale struct. loaded says that the struct was read.
func (w *writing) compares(loaded bool) bool {
	intent := asked.Of(w.db.Statement)
	return (!w.creates || loaded && statement.InSave()) && (intent == nil || !intent.Ignore && !intent.Expects) && !statement.IsInMaps(w.db.Statement.Dest, w.model.Column.Field)
}

// isUnversioned reports whether the foreign key may change without moving the version.
func (w *writing) isUnversioned(h *holding) (is bool) {
	h.eachKey(func(key *schema.Field, _ *schema.Reference) { is = is || w.model.Unversioned[key.DBName] })
	return is
}

// namesNone reports whether the foreign key is empty. The struct does not show whether it was emptied or never set.
func (h *holding) namesNone() bool {
	return !slices.ContainsFunc(h.keys, func(key kept) bool { return !key.value.IsZero() })
}

// mustAgree returns an error if an update gives all rows of a slice the key of an association that only some hold.
func (w *writing) mustAgree() error {
	structs := 0
	statement.EachStruct(w.db.Statement.ReflectValue, func(reflect.Value) { structs++ })
	for _, h := range w.held {
		if !h.assigned || structs == 1 {
			continue
		}
		gets := statement.KeyOfOther(h.relation, h.place)
		same := statement.HasKeyOfOther(h.relation, h.place)
		statement.EachStruct(w.db.Statement.ReflectValue, func(row reflect.Value) {
			own := statement.LinkOf(h.relation, row)
			i := slices.IndexFunc(w.held, func(other *holding) bool {
				return other.assigned && other.relation == h.relation && other.row.Addr().Pointer() == row.Addr().Pointer()
			})
			if i >= 0 {
				own = statement.KeyOfOther(h.relation, w.held[i].place)
			}
			same = same && own == gets
		})
		if !same {
			return fmt.Errorf("gormlock: %s.%s: an update of a slice gives all rows the same foreign key, and the structs do not all hold the same %s: save the slice, update each struct, or use Omit(%q)",
				w.model.Schema.Name, h.relation.Name, h.relation.Name, h.relation.Name)
		}
	}
	return nil
}

// contradicts is the error if an association and its foreign key name different rows.
func (w *writing) contradicts(h *holding) error {
	var columns, values []string
	ctx := w.db.Statement.Context
	h.eachKey(func(key *schema.Field, ref *schema.Reference) {
		columns = append(columns, key.Name)
		value, is := statement.Named(w.own, key)
		if !is {
			value, _ = key.ValueOf(ctx, h.row)
		}
		text := statement.KeyName([]any{value})
		switch {
		case statement.Computed(value):
			text = "an expression"
		case value == nil || reflect.ValueOf(value).Kind() == reflect.Pointer && reflect.ValueOf(value).IsNil():
			text = "NULL"
		}
		values = append(values, text)
	})
	s := h.relation.FieldSchema
	holds := "a new row of " + s.Table
	if key, _ := statement.KeyOf(w.db.Statement, s, reflect.Indirect(h.place)); key != nil {
		held := map[string]any{}
		for i, field := range s.PrimaryFields {
			held[field.DBName] = key[i]
		}
		holds = fault.Row(s.Table, s.PrimaryFieldDBNames, held)
	}
	return fmt.Errorf("gormlock: %s.%s holds %s, and %s names another row, %s: let both name one row, set %s to nil, or use Omit(%q)",
		w.model.Schema.Name, h.relation.Name, holds, strings.Join(columns, ", "), strings.Join(values, ", "), h.relation.Name, h.relation.Name)
}
