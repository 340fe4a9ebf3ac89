package models

import (
	"fmt"
	"go/types"
	"strconv"
	"strings"
)

// column is what the tag of a version or a fence says. The rules, and the words, are those of gormlock when it meets the
// model; a test runs both over one table of models.
type column struct {
	field    *Field
	mode     string
	initial  int64
	temporal bool
}

func qualifier(pkg *types.Package) string { return pkg.Name() }

// typeName is the type as the run-time prints it.
func typeName(f *Field) string {
	return strings.ReplaceAll(types.TypeString(f.Var.Type(), qualifier), "[]byte", "[]uint8")
}

// shape returns the type inside of a pointer or a sql.Null, and whether the type can hold a version.
func shape(t types.Type) (inner types.Type, temporal, ok bool) {
	t = types.Unalias(t)
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		t = u.Elem()
	case *types.Struct:
		named, isNamed := t.(*types.Named)
		if isNamed && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "database/sql" && u.NumFields() == 2 && u.Field(1).Name() == "Valid" {
			t = u.Field(0).Type()
		}
	}
	if named, isNamed := types.Unalias(t).(*types.Named); isNamed && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "time" && named.Obj().Name() == "Time" {
		return t, true, true
	}
	basic, isBasic := t.Underlying().(*types.Basic)
	if !isBasic {
		return t, false, false
	}
	switch basic.Kind() {
	case types.Int, types.Int8, types.Int16, types.Int32, types.Int64,
		types.Uint, types.Uint8, types.Uint16, types.Uint32, types.Uint64:
		return t, false, true
	default:
		return t, false, false
	}
}

func parseVersion(f *Field, words []string) (*column, error) {
	c := &column{field: f, initial: 1}
	if f.Column == "" {
		return nil, fmt.Errorf("a version field must be a column")
	}
	if f.PrimaryKey {
		return nil, fmt.Errorf("a version field cannot be the primary key")
	}
	if f.Serialized {
		return nil, fmt.Errorf("a version field must hold what its column holds, without a serializer: remove the serializer")
	}
	_, temporal, ok := shape(f.Var.Type())
	if !ok {
		return nil, fmt.Errorf("a version field must be an integer, a pointer to one, a sql.Null integer or a time.Time, not %s", typeName(f))
	}
	c.temporal = temporal
	given := ""
	for _, word := range words {
		word = strings.TrimSpace(word)
		number, isInitial := strings.CutPrefix(word, "initial=")
		switch {
		case isInitial:
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("initial=%s: the first version must be a whole number, 0 or more", number)
			}
			c.initial, given = n, word
		case c.mode == "" && (word == "rails" || word == "hibernate" || word == "xmin"):
			c.mode = word
		case c.mode != "":
			return nil, fmt.Errorf("%q after %s: a version has one mode", word, c.mode)
		default:
			return nil, fmt.Errorf("unknown mode %q: the modes are rails, hibernate, xmin and initial=N", word)
		}
	}
	if (c.mode == "rails" || c.mode == "hibernate") && given == "" {
		c.initial = 0
	}
	return c, c.check(given)
}

// check holds the words of the tag against the column.
func (c *column) check(given string) error {
	f := c.field
	switch {
	case c.mode == "xmin" && given != "":
		return fmt.Errorf("%s: the server sets xmin: leave it out", given)
	case c.mode == "xmin":
		return checkXmin(f)
	case c.temporal && given != "":
		return fmt.Errorf("%s: a time has no first number: leave it out", given)
	case c.temporal && c.mode == "rails":
		return fmt.Errorf("a Rails lock column must be an integer, not %s", typeName(f))
	case !f.full():
		return fmt.Errorf("a version column must be readable and writable: remove the permission from the tag `gorm`")
	case !c.temporal && f.AutoTime:
		return fmt.Errorf("a version that is a number cannot be a time that GORM sets: make it a time.Time, rename it, or tag it `gorm:\"autoCreateTime:false;autoUpdateTime:false\"`")
	}
	if n, ok := f.intDefault(); ok && !c.temporal && n != c.initial {
		return fmt.Errorf("default:%d disagrees with the first version %d: write default:%d", n, c.initial, c.initial)
	}
	return nil
}

func checkXmin(f *Field) error {
	if basic, ok := f.Var.Type().Underlying().(*types.Basic); !ok || basic.Kind() != types.Uint32 {
		return fmt.Errorf("the tag `version,xmin` needs a uint32 field, not %s", typeName(f))
	}
	if f.Column != "xmin" || f.Creatable || f.Updatable || !f.IgnoreMigration {
		return fmt.Errorf("tag the system column `gorm:\"column:xmin;->;-:migration\" gormlock:\"version,xmin\"`")
	}
	return nil
}

func parseFence(f *Field, keyed bool, words []string) (*column, error) {
	inner, temporal, ok := shape(f.Var.Type())
	switch {
	case f.Column == "":
		return nil, fmt.Errorf("a fence field must be a column")
	case f.PrimaryKey:
		return nil, fmt.Errorf("a fence field cannot be the primary key")
	case !keyed:
		return nil, errFenceNeedsKey
	case f.Serialized || !ok || temporal || !holdsTokens(inner):
		return nil, fmt.Errorf("a fence field must be an int64, a pointer to one or a sql.NullInt64, not %s", typeName(f))
	case !f.full():
		return nil, fmt.Errorf("a fence column must be readable and writable: remove the permission from the tag `gorm`")
	case f.AutoTime:
		return nil, fmt.Errorf("a fence field cannot be a time that GORM sets")
	}
	switch column := f.postgresType(); {
	case strings.HasPrefix(column, "bigint"), column == "int8", strings.HasPrefix(column, "numeric"):
	default:
		return nil, fmt.Errorf("tokens need 64 bits and the column is %s: give it the type bigint", column)
	}
	topic := ""
	for _, word := range words {
		key, isKey := strings.CutPrefix(strings.TrimSpace(word), "key=")
		switch {
		case !isKey:
			return nil, fmt.Errorf("unknown word %q after fence: only key= may follow, with the first part of the key's name", word)
		case key == "":
			return nil, fmt.Errorf("key= names nothing: give the first part of the key's name, or leave it out")
		case topic != "":
			return nil, fmt.Errorf("a second key %q: a fence column has only one", key)
		}
		topic = key
	}
	return &column{field: f}, nil
}

// holdsTokens reports whether the type is a signed integer of 64 bits, as int is where PostgreSQL's clients run.
func holdsTokens(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && (basic.Kind() == types.Int64 || basic.Kind() == types.Int)
}

// postgresType is the type that GORM's driver gives the integer column, in lower case.
func (f *Field) postgresType() string {
	declared := strings.ToLower(f.Settings["TYPE"])
	size := 64
	if n, err := strconv.Atoi(f.Settings["SIZE"]); err == nil && n != 0 {
		size = n
	}
	if declared == "uint" {
		size++
	}
	column, serial := "bigint", "bigserial"
	switch {
	case size <= 16:
		column, serial = "smallint", "smallserial"
	case size <= 32:
		column, serial = "integer", "serial"
	}
	switch grows := truth(f.Settings["AUTOINCREMENT"]); {
	case grows && !strings.Contains(declared, "serial"):
		return serial
	case declared != "" && declared != "int" && declared != "uint":
		return declared
	}
	return column
}
