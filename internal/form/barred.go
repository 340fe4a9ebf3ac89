package form

import (
	"fmt"
	"slices"
)

// Barred returns the error of an update whose caller names a column that its tag excludes from updates: GORM would leave it out. Writing a struct
// does not name its fields.
func (w Write) Barred() error {
	if !w.Model.Barred {
		return nil
	}
	name := ""
	switch given := w.Stmt.Dest.(type) {
	case map[string]any:
		name = w.barredIn(given)
	case *map[string]any:
		if given != nil {
			name = w.barredIn(*given)
		}
	default:
		if at := slices.IndexFunc(w.Stmt.Selects, w.isBarred); at >= 0 {
			name = w.Stmt.Selects[at]
		}
	}
	if name == "" {
		return nil
	}
	return fmt.Errorf("gormlock: %s.%s: its tag keeps it out of updates, so GORM leaves it out: do not name it, or change the tag",
		w.Model.Schema.Name, w.Model.Schema.LookUpField(name).Name)
}

// barredIn returns the first such column of a map, by name, that the caller's Select does not leave out, or "".
func (w Write) barredIn(given map[string]any) (first string) {
	if _, ownSet := w.Stmt.Clauses["SET"]; ownSet {
		return "" // the caller's SET is written instead of the map
	}
	for name := range given {
		if (first == "" || name < first) && w.isBarred(name) && w.isSelected(name) {
			first = name
		}
	}
	return first
}

// isBarred reports whether a name is that of a column which GORM leaves out of updates, and which neither a guard writes nor the caller leaves out.
func (w Write) isBarred(name string) bool {
	field := w.Model.Schema.LookUpField(name)
	if field == nil || field.Updatable && field.DBName != "" || w.Model.Schema.Relationships.Relations[field.Name] != nil {
		return false
	}
	return !w.isGuards(field) && !w.isOmitted(field)
}

// barred returns the error of a value in a form for a field that the model's tag excludes from updates, if the value differs from the struct's.
func (v *values) barred() error {
	for _, field := range v.Model.Schema.Fields {
		from := v.schema.LookUpField(field.DBName)
		if field.DBName == "" || field.Updatable || field.PrimaryKey || v.isGuards(field) || from == nil || !from.Updatable {
			continue
		}
		if v.isOmitted(field) || !v.isSelected(field.Name) || !v.differ(field, from) {
			continue
		}
		return fmt.Errorf("gormlock: %s.%s: its tag keeps it out of updates, so GORM leaves out what the form has for it: Omit(%q), or change a tag",
			v.Model.Schema.Name, field.Name, field.Name)
	}
	return nil
}

// onlyBarred returns the error of a struct that has values, but none that an update writes.
func (v *values) onlyBarred() error {
	if len(v.Stmt.Selects)+len(v.Stmt.Omits) > 0 {
		return nil // they name what is written
	}
	some := ""
	for _, field := range v.schema.Fields {
		switch _, zero := field.ValueOf(v.Stmt.Context, v.given); {
		case field.DBName == "" || zero || v.isGuards(field) || field.PrimaryKey:
		case field.Updatable:
			return nil
		case v.differ(field, field):
			some = field.Name
		}
	}
	if some == "" {
		return nil
	}
	return fmt.Errorf("gormlock: %s.%s: its tag keeps it out of updates, and there is nothing else to write: change the tag, or leave the update out",
		v.Model.Schema.Name, some)
}
