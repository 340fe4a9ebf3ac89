package models

import (
	"errors"
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// rootOf says what is wrong with a field that is tagged as the root of its model, as far as it is sure what GORM makes of it.
func (r *reader) rootOf(f *Field, words []string) error {
	if len(words) > 0 {
		return fmt.Errorf("the tag `root` has no options: remove %q", words[0])
	}
	if f.Column != "" {
		return errors.New("the tag `root` is for a belongs-to, not for a column: put it on the field that holds the struct")
	}
	named := elementOf(f.Var.Type())
	if named == nil || isSlice(f.Var.Type()) || f.none() {
		return errors.New("the tag `root` is for a belongs-to, where the model itself has the foreign key")
	}
	s, ok := named.Underlying().(*types.Struct)
	if !ok || !r.hasKeyOf(f) {
		return nil // the other struct may have the key, or GORM refuses the model
	}
	name := named.Obj().Name()
	switch version := versionWords(s); {
	case version == nil:
		return fmt.Errorf("the root %s has no version field to move: tag one `gormlock:\"version\"`", name)
	case slices.Contains(version, "xmin"):
		return fmt.Errorf("the root %s has the version xmin, which cannot be moved alone: give it a version column", name)
	}
	return nil
}

func isSlice(t types.Type) bool {
	if pointer, ok := t.Underlying().(*types.Pointer); ok {
		t = pointer.Elem()
	}
	_, is := t.Underlying().(*types.Slice)
	return is
}

// hasKeyOf reports whether the model has the foreign key that GORM looks for by default.
func (r *reader) hasKeyOf(f *Field) bool {
	key := f.Var.Name() + "ID"
	if named := f.Settings["FOREIGNKEY"]; named != "" {
		key = named
	}
	return slices.ContainsFunc(r.fields, func(other *Field) bool { return other.Var.Name() == key && other.Column != "" })
}

// versionWords are the words of the tag of a struct's version; nil where it has none.
func versionWords(s *types.Struct) []string {
	for _, f := range FieldsOf(s) {
		words := strings.Split(f.Tag.Get("gormlock"), ",")
		for i := range words {
			words[i] = strings.TrimSpace(words[i])
		}
		if words[0] == "version" {
			return words
		}
	}
	return nil
}
