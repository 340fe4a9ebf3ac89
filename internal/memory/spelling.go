package memory

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/model"
)

// A key can be spelled in several ways: a uuid in capitals, a numeric with more zeros, a char(n) without its spaces. Which spellings are the same
// key depends on the type of the column, and nobody asks for that here. So structs are found by a form that all these spellings share. If two rows
// share it too, the key as it is decides.

// spelling is the form that all spellings of a key share.
func (k Key) spelling() Key {
	if k.name != "" {
		k.name = spellingOf(k.name)
	}
	return k
}

func (s stateOfRow) spelling() stateOfRow {
	s.key = s.key.spelling()
	return s
}

// spellingOf is the form of a name, part by part. statement.KeyName writes the length of each part before it.
func spellingOf(name string) string {
	var all strings.Builder
	for rest := name; rest != ""; {
		length, after, is := strings.Cut(rest, ":")
		if !is {
			return spellingOfPart(name)
		}
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(after) {
			return spellingOfPart(name)
		}
		_, _ = all.WriteString(spellingOfPart(after[:n]))
		_ = all.WriteByte(0)
		rest = after[n:]
	}
	return all.String()
}

func spellingOfPart(part string) string {
	part = strings.ToLower(strings.TrimSpace(part))
	if uuid := strings.Trim(strings.TrimPrefix(part, "urn:uuid:"), "{}"); strings.Contains(uuid, "-") || len(uuid) >= 32 {
		if digits := strings.ReplaceAll(uuid, "-", ""); len(digits) == 32 && strings.Trim(digits, "0123456789abcdef") == "" {
			return digits
		}
	}
	if strings.Trim(part, "+-.0123456789") != "" || strings.Trim(part, "+-.") == "" {
		return part
	}
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(part, "+"), ".")
	digits, below := strings.CutPrefix(whole, "-")
	number := "0" + strings.TrimLeft(digits, "0") + "." + strings.TrimRight(fraction, "0")
	if below {
		number = "-" + number
	}
	return number
}

// respells reports whether other is the same version of the row, with another spelling of its key.
func (h held) respells(other held) bool {
	return h.key != other.key && h.version.Equal(other.version) && h.key.spelling() == other.key.spelling()
}

// isRespelt reports whether a place has the version that s gave to the struct of this number, with another spelling of its key. If that was there
// before the undone writes, or a statement left it there, it belongs to another row.
func (s *Structs) isRespelt(row reflect.Value, i int) bool {
	return s.gaveTo(row, i) && heldIn(s.model, row).respells(heldIn(s.model, s.Of(s.After, i)))
}

// mayBeRespelt is for the struct's own place, and for key types whose spellings are not known here. All columns except the key must be as s left
// them, or the model must say that its key is of such a type.
func (s *Structs) mayBeRespelt(row reflect.Value, i int) bool {
	if !s.gaveTo(row, i) || isUnkeyed(s.model.Schema, row) {
		return false
	}
	if s.Places.mayBeRespelt(s.model, s.In, heldIn(s.model, s.Of(s.After, i)), heldIn(s.model, row)) {
		return true
	}
	as := true
	s.each(i, func(field *schema.Field, _, left pointee) {
		now := state(field, row)
		switch {
		case !as || holds(now, left):
		case field.PrimaryKey:
			as = isSpelled(field.FieldType)
		default:
			as = false
		}
	})
	return as
}

// mayBeRespelt reports whether a place may still have its row, at the same version, with a key that no statement met before the undone writes. The
// model must say that its key is of a type whose spellings are not known here.
func (p *Places) mayBeRespelt(m *model.Model, in Table, was, now held) bool {
	return p != nil && was.key != now.key && was.version.Equal(now.version) && slices.ContainsFunc(m.Schema.PrimaryFields, isOfStrangeType) &&
		!p.predates(m.Schema.ModelType, in, now)
}

// isOfStrangeType reports whether a tag gives the column of a text a type for which spellingOf does not know which spellings are equal, such as
// inet.
func isOfStrangeType(field *schema.Field) bool {
	words := strings.FieldsFunc(strings.ToLower(field.TagSettings["TYPE"]), func(r rune) bool { return r == ' ' || r == '(' })
	if len(words) == 0 || field.IndirectFieldType.Kind() != reflect.String && field.DataType != schema.Time {
		return false
	}
	return !slices.Contains([]string{"text", "varchar", "character", "char", "bpchar", "uuid", "numeric", "decimal", "bytea", "timestamptz", "timestamp"}, words[0])
}

// isSpelled reports whether values of a type can have several spellings. Whole numbers cannot.
func isSpelled(of reflect.Type) bool {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of.PkgPath() != "" || of.Kind() < reflect.Bool || of.Kind() > reflect.Uintptr
}

// gaveTo reports whether a place has the version that s gave to the struct of this number, with a key about which nothing else is known.
func (s *Structs) gaveTo(row reflect.Value, i int) bool {
	version := s.model.Column
	if version == nil || !row.IsValid() || !row.CanAddr() || s.namesNone(i) || s.versionStayed(i) {
		return false
	}
	left, now := version.Read(s.Of(s.After, i)), heldIn(s.model, row)
	if !version.Loaded(left) || !left.Equal(now.version) || s.standsFor(row, i) {
		return false
	}
	made, is := s.Places.left[s.Places.stateOf(s.Type(), s.In, now)]
	return (!is || !made) && !s.Places.predates(s.Type(), s.In, now)
}
