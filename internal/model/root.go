package model

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// readRoot reads the tag `root` on a belongs-to: each row of the model is a part of the row that it belongs to.
func (m *Model) readRoot(db *gorm.DB, field *schema.Field, words []string) error {
	if len(words) > 0 {
		return fmt.Errorf("the tag `root` has no options: remove %q", words[0])
	}
	if field.DBName != "" {
		return fmt.Errorf("the tag `root` is for a belongs-to, not for a column: put it on the field that holds the struct")
	}
	refused := (&gorm.Statement{DB: db}).Parse(reflect.New(m.Schema.ModelType).Interface()) // waits if another goroutine is parsing the model
	relation := m.Schema.Relationships.Relations[field.Name]
	if relation == nil && refused != nil && (field.Creatable || field.Updatable || field.Readable) {
		return nil // GORM refuses the model
	}
	if relation == nil || relation.Type != schema.BelongsTo {
		return fmt.Errorf("the tag `root` is for a belongs-to, where the model itself has the foreign key")
	}
	root := relation.FieldSchema
	switch version := versionWords(root); {
	case version == nil:
		return fmt.Errorf("the root %s has no version field to move: tag one `gormlock:\"version\"`", root.Name)
	case slices.Contains(version, "xmin"):
		return fmt.Errorf("the root %s has the version xmin, which cannot be moved alone: give it a version column", root.Name)
	}
	if len(m.Schema.PrimaryFields) == 0 {
		return fmt.Errorf("%s has no primary key, by which its rows are found again: tag one `gorm:\"primaryKey\"`", m.Schema.Name)
	}
	for _, ref := range relation.References {
		if ref.PrimaryKey == nil || !ref.PrimaryKey.PrimaryKey || len(relation.References) != len(root.PrimaryFields) {
			return fmt.Errorf("the foreign key must refer to the primary key of the root %s", root.Name)
		}
	}
	m.Roots = append(m.Roots, relation)
	m.roots.Add(root.Table)
	return nil
}

// versionWords are the words of the version tag of a model, nil if it has none.
func versionWords(s *schema.Schema) []string {
	for _, field := range s.Fields {
		if words := strings.Split(strings.ReplaceAll(field.Tag.Get("gormlock"), " ", ""), ","); words[0] == "version" {
			return words
		}
	}
	return nil
}
