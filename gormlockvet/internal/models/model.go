package models

import (
	"errors"
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// Problem is a tag that gormlock refuses, or does not see.
type Problem struct {
	Field *types.Var // of the struct itself; nil: the whole struct
	Text  string
	Fix   *Fix
}

// Fix is a better tag for the field.
type Fix struct {
	Text string // what it does
	Tag  string // the whole tag, without its quotes
}

// Model is a struct with tags of gormlock.
type Model struct {
	Name        string
	Version     string // the column, empty: none
	VersionName string // the field
	Xmin        bool
	Defaulted   bool // the table gives the version to rows that others insert
	Fence       string
	Unversioned []string // columns
	Columns     []string // all
	Keys        []string // the columns of the primary key
	Problems    []Problem
}

// Tagged reports whether writes of the struct are compared or guarded.
func (m *Model) Tagged() bool { return m != nil && (m.Version != "" || m.Fence != "") }

var errFenceNeedsKey = errors.New("a fenced model needs a primary key")

// Of reads a struct. asModel says that GORM meets it as a model, and not only inside of others.
func Of(name string, s *types.Struct, asModel bool) *Model {
	fields := FieldsOf(s)
	m := &Model{Name: name}
	keys := primaryKeys(fields)
	r := reader{model: m, fields: fields, asModel: asModel, keyed: len(keys) > 0}
	for _, f := range fields {
		if f.Column != "" {
			m.Columns = append(m.Columns, f.Column)
		}
		r.read(f)
	}
	for _, key := range keys {
		m.Keys = append(m.Keys, key.Column)
	}
	r.whole()
	return m
}

// OfType returns the model that t, or what it points to or holds, is.
func OfType(t types.Type) *Model {
	named := elementOf(t)
	if named == nil {
		return nil
	}
	s, ok := named.Underlying().(*types.Struct)
	if !ok || !Mentions(s) {
		return nil
	}
	return Of(named.Obj().Name(), s, true)
}

// NamedOf returns the struct that t, or what it points to or holds, is.
func NamedOf(t types.Type) *types.Named { return elementOf(t) }

func elementOf(t types.Type) *types.Named {
	for range 4 {
		switch u := types.Unalias(t).(type) {
		case *types.Named:
			if _, ok := u.Underlying().(*types.Struct); ok {
				return u
			}
			t = u.Underlying()
		case *types.Pointer:
			t = u.Elem()
		case *types.Slice:
			t = u.Elem()
		case *types.Array:
			t = u.Elem()
		default:
			return nil
		}
	}
	return nil
}

// Mentions reports whether a tag of the struct, or of one that it embeds, speaks of gormlock.
func Mentions(s *types.Struct) bool { return mentionsAt(s, 0) }

func mentionsAt(s *types.Struct, depth int) bool {
	const deepest = 4
	for i := range s.NumFields() {
		if strings.Contains(s.Tag(i), `gormlock:"`) {
			return true
		}
		v := s.Field(i)
		if !v.Embedded() && !strings.Contains(strings.ToLower(s.Tag(i)), "embedded") {
			continue
		}
		t := v.Type().Underlying()
		if pointer, ok := t.(*types.Pointer); ok {
			t = pointer.Elem().Underlying()
		}
		if inner, ok := t.(*types.Struct); ok && depth < deepest && mentionsAt(inner, depth+1) {
			return true
		}
	}
	return false
}

// reader reads the tags of a model in the order of its fields.
type reader struct {
	model       *Model
	fields      []*Field
	asModel     bool
	keyed       bool
	version     *column
	fence       *column
	unversioned *Field
}

func (r *reader) problem(f *Field, err error) {
	if err != nil && !f.Open {
		r.model.Problems = append(r.model.Problems, Problem{
			Field: f.Top, Text: fmt.Sprintf("%s.%s: %s", r.model.Name, f.Var.Name(), err), Fix: fixOf(f, err),
		})
	}
}

func (r *reader) read(f *Field) {
	words := strings.Split(f.Tag.Get("gormlock"), ",")
	switch word := strings.TrimSpace(words[0]); word {
	case "version":
		r.readVersion(f, words[1:])
	case "unversioned":
		switch {
		case len(words) > 1 && strings.TrimSpace(words[1]) != "renewed":
			r.problem(f, fmt.Errorf("the tag `unversioned` has the option renewed and no other: remove %q", words[1]))
		case len(words) > 2:
			r.problem(f, fmt.Errorf("the tag `unversioned` has the option renewed and no other: remove %q", words[2]))
		case f.Column == "":
			r.problem(f, fmt.Errorf("an unversioned field must be a column"))
		default:
			r.unversioned = f
			r.model.Unversioned = append(r.model.Unversioned, f.Column)
		}
	case "fence":
		r.readFence(f, words[1:])
	case "root":
		r.problem(f, r.rootOf(f, words[1:]))
	case "":
	default:
		r.problem(f, fmt.Errorf("unknown word %q in the tag `gormlock`, which begins with version, unversioned, fence or root", words[0]))
	}
}

func (r *reader) readVersion(f *Field, words []string) {
	if r.version != nil {
		r.problem(f, fmt.Errorf("a second version field beside %s: keep one", r.version.field.Var.Name()))
		return
	}
	c, err := parseVersion(f, words)
	if err != nil {
		r.problem(f, err)
	}
	if c == nil {
		c = &column{field: f}
	}
	r.version = c
	_, r.model.Defaulted = f.Settings["DEFAULT"]
	r.model.Version, r.model.VersionName, r.model.Xmin = f.Column, f.Var.Name(), c.mode == "xmin"
}

func (r *reader) readFence(f *Field, words []string) {
	if r.fence != nil {
		r.problem(f, fmt.Errorf("a second fence field beside %s: keep one", r.fence.field.Var.Name()))
		return
	}
	_, err := parseFence(f, r.keyed || !r.asModel, words)
	r.problem(f, err)
	r.fence = &column{field: f}
	r.model.Fence = f.Column
}

// whole checks what only a model as a whole can be wrong in.
func (r *reader) whole() {
	switch {
	case !r.asModel:
	case r.version == nil && r.unversioned != nil:
		r.model.Problems = append(r.model.Problems, Problem{
			Field: r.unversioned.Top,
			Text:  r.model.Name + " has unversioned fields and no version field: tag one `gormlock:\"version\"`",
		})
	case r.version != nil && !r.keyed && r.version.field.Column != "":
		r.problem(r.version.field, errors.New("a versioned model needs a primary key"))
	}
}

// xminTag is the whole tag of a system column.
const xminTag = `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`

func fixOf(f *Field, err error) *Fix {
	_, hasJSON := f.Tag.Lookup("json")
	if strings.HasPrefix(err.Error(), "tag the system column") && !hasJSON && f.Var == f.Top {
		return &Fix{Text: "tag the system column", Tag: xminTag}
	}
	return nil
}

// IsColumn reports whether name is the column, or the field, that gormlock moves.
func (m *Model) IsColumn(name string) bool {
	return m != nil && m.Version != "" && (strings.EqualFold(name, m.Version) || name == m.VersionName)
}

// OnlyUnversioned reports whether all columns may change without the version.
func (m *Model) OnlyUnversioned(columns []string) bool {
	return len(columns) > 0 && !slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(m.Unversioned, c) })
}
