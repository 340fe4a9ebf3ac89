package model

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/statement"
)

// Readable are the columns that GORM reads, including fields that only queries fill.
func (m *Model) Readable() []*schema.Field {
	fields := make([]*schema.Field, 0, len(m.Schema.DBNames))
	for _, name := range m.Schema.DBNames {
		if field := m.Schema.FieldsByDBName[name]; field.Readable {
			fields = append(fields, field)
		}
	}
	return fields
}

// Model holds what the tags of a model say. Most models have no tags.
type Model struct {
	Schema *schema.Schema
	Column *column.Version        // nil: the model has none
	Fence  *column.Fence          // nil: the model has none
	Roots  []*schema.Relationship // the belongs-to relations tagged root
	Err    error                  // what is wrong with the tags
	db     *gorm.DB               // the database of the plugin
	roots  *install.Names         // the tables that are roots of other models, as far as those models were used
	others
	related
	texts
	memo
}

// related says which associations lead to checked models: those with a version or a fence.
type related struct {
	KeyLinked bool                   // its primary key contains a foreign key of a belongs-to
	Children  bool                   // a has-one or has-many relation leads to a checked model, or to one with a root
	Shared    []*schema.Relationship // the relations to checked models where GORM saves one struct for each key: belongs-to, has-many, many-to-many
	Crossed   []*schema.Relationship // the belongs-to relations whose foreign key has a column in common with that of another belongs-to
	ByOthers  bool                   // the model, or a model saved with it, refers to rows by other columns than their key
}

// others describes the columns besides the version.
type others struct {
	Unversioned map[string]bool // a write of these compares the version and does not move it
	Weighs      bool            // some are unversioned, or GORM sets some in each update
	Indirect    []*schema.Field // these hold a pointer, or are reached through one
	Pointers    bool            // some hold a pointer
	Renewed     []*schema.Field // others renew these in the row, so a write of the struct leaves them out
	Barred      bool            // GORM leaves some out of updates, or some fields are no columns
}

// IsRoot reports whether rows of other models are parts of this model's rows.
func (m *Model) IsRoot() bool { return m.roots.Has(m.Schema.Table) }

// IsFenced reports whether the model has a fence, or a root that is fenced.
func (m *Model) IsFenced() bool { return m.isFenced(map[*schema.Schema]bool{}) }

func (m *Model) isFenced(seen map[*schema.Schema]bool) bool {
	seen[m.Schema] = true
	return m.Fence != nil || slices.ContainsFunc(m.Roots, func(root *schema.Relationship) bool {
		return !seen[root.FieldSchema] && m.Of(root.FieldSchema).isFenced(seen)
	})
}

// Shows reports whether a struct shows that it was read from a row or written to one, or that it is new. If it shows neither, only the server knows.
func (m *Model) Shows(row reflect.Value) (read, isNew bool) {
	if m.Column == nil {
		if m.Fence != nil {
			_, zero := m.Fence.Field.ValueOf(context.Background(), row)
			read = !zero
		}
		return read, false
	}
	held := m.Column.Read(row)
	if m.Column.ZeroIsLoaded() && held.N == 0 && !m.Column.IsUnread(held) {
		return false, false
	}
	read = m.Column.Loaded(held)
	return read, !read
}

// memo holds what other packages remember of a model, each by a key of its own type, and whether the model needs a journal.
type memo struct {
	values    sync.Map
	journaled atomic.Pointer[bool] // nil: nobody has asked yet
}

// Remember returns what is remembered under key. The first call makes it with first.
func (m *memo) Remember(key any, first func() any) any {
	if value, ok := m.values.Load(key); ok {
		return value
	}
	value, _ := m.values.LoadOrStore(key, first())
	return value
}

// OfSchema returns what the tags of a schema say. It reads them once for each plugin.
func OfSchema(db *gorm.DB, s *schema.Schema) *Model {
	models := &install.Of(db).Models
	if m, ok := models.Load(s); ok {
		return m.(*Model)
	}
	statement.Await(s)
	m, _ := models.LoadOrStore(s, parseVersionTags(db, s))
	return m.(*Model)
}

// Of returns what the tags of the statement's model say, nil if there is no model or no plugin.
func Of(db *gorm.DB) *Model {
	if db.Statement.Schema == nil {
		return nil
	}
	if install.Of(db) == nil {
		return nil
	}
	return OfSchema(db, db.Statement.Schema)
}

// Of is the model of another schema.
func (m *Model) Of(s *schema.Schema) *Model { return OfSchema(m.db, s) }

// CheckTags fails a read if the tags are wrong, so that they are noticed on the first use of the model. It returns what Of returns.
func CheckTags(db *gorm.DB) *Model {
	m := Of(db)
	if m != nil && m.Err != nil {
		fault.Add(db, m.Err)
	}
	return m
}

func parseVersionTags(db *gorm.DB, s *schema.Schema) *Model {
	settings := install.Of(db)
	m := &Model{Schema: s, db: &gorm.DB{Config: db.Config}, roots: &settings.Roots}
	m.Table = statement.NameInStatement(s.Table)
	without := settings.WithoutVersions
	if err := checkPlaces(s.ModelType); err != nil {
		m.Err = fmt.Errorf("gormlock: %s.%w", s.Name, err)
		return m
	}
	for _, field := range s.Fields {
		m.Barred = m.Barred || !field.Updatable || field.DBName == ""
		if err := m.readTag(db, field, without); err != nil {
			m.Err = fmt.Errorf("gormlock: %s.%s: %w", s.Name, field.Name, err)
			return m
		}
	}
	if m.Column == nil && len(m.Unversioned) > 0 {
		m.Err = fmt.Errorf("gormlock: %s has unversioned fields and no version field: tag one `gormlock:\"version\"`", s.Name)
		return m
	}
	if m.Column != nil && len(s.PrimaryFields) == 0 {
		m.Err = withoutKey(s, m.Column)
		return m
	}
	if (m.Column != nil || m.Fence != nil) && statement.IsPostgres(db) {
		if m.Err = cutNames(s); m.Err != nil {
			return m
		}
	}
	m.Weighs = len(m.Unversioned) > 0
	for _, field := range s.FieldsByDBName {
		m.Weighs = m.Weighs || field.AutoUpdateTime > 0
		if field.FieldType.Kind() == reflect.Pointer || statement.ThroughPointer(field) {
			m.Indirect = append(m.Indirect, field)
			m.Pointers = m.Pointers || field.FieldType.Kind() == reflect.Pointer
		}
	}
	m.relate(without)
	if m.Column != nil {
		m.text = newVersionSQL(db, m, m.Table)
	}
	if m.Column != nil || m.Fence != nil {
		m.quoted = quotedColumns(db, s)
	}
	return m
}

// VersionOf is the version of a model for which no database is known, nil if the model has no version.
func VersionOf(s *schema.Schema) (*column.Version, error) {
	if err := checkPlaces(s.ModelType); err != nil {
		return nil, fmt.Errorf("gormlock: %s.%w", s.Name, err)
	}
	var found *column.Version
	for _, field := range s.Fields {
		words := strings.Split(field.Tag.Get("gormlock"), ",")
		if strings.TrimSpace(words[0]) != "version" {
			continue
		}
		version, err := column.ReadVersion(field, words[1:])
		if err == nil {
			err = shadowed(s, field)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("gormlock: %s.%s: %w", s.Name, field.Name, err)
		case found != nil:
			return nil, fmt.Errorf("gormlock: %s.%s: %w", s.Name, field.Name, secondVersion(found))
		}
		found = version
	}
	if found != nil && len(s.PrimaryFields) == 0 {
		return nil, withoutKey(s, found)
	}
	return found, nil
}

// shadowed returns an error if GORM reads the column of a tagged field into another field, because that one is less deeply embedded.
func shadowed(s *schema.Schema, field *schema.Field) error {
	if other := s.FieldsByDBName[field.DBName]; field.DBName != "" && other != nil && other != field {
		return fmt.Errorf("another field of the same column %s hides this one: tag that field, or remove it", field.DBName)
	}
	return nil
}

func secondVersion(first *column.Version) error {
	return fmt.Errorf("a second version field beside %s: keep one", first.Field.Name)
}

// cutNames returns the error of a column whose rows GORM does not read into its field, because the server shortens the name. A struct that was
// read would have the version of the row, and not its values.
func cutNames(s *schema.Schema) error {
	for _, name := range s.DBNames {
		if field := s.FieldsByDBName[name]; field.Readable && len(name) > statement.LongestName {
			return fmt.Errorf("gormlock: %s.%s: PostgreSQL keeps %d bytes of a name and that of the column %s has %d, so GORM never reads it: give it a shorter one by `gorm:\"column:…\"`",
				s.Name, field.Name, statement.LongestName, name, len(name))
		}
	}
	return nil
}

func withoutKey(s *schema.Schema, version *column.Version) error {
	return fmt.Errorf("gormlock: %s.%s: a versioned model needs a primary key", s.Name, version.Field.Name)
}

// readUnversioned reads the words after `unversioned` in the tag of a field.
func (m *Model) readUnversioned(field *schema.Field, words []string) error {
	for _, word := range words {
		if strings.TrimSpace(word) != "renewed" {
			return fmt.Errorf("the tag `unversioned` has the option renewed and no other: remove %q", word)
		}
		m.Renewed = append(m.Renewed, field)
	}
	if field.DBName == "" {
		return fmt.Errorf("an unversioned field must be a column")
	}
	if m.Unversioned == nil {
		m.Unversioned = map[string]bool{}
	}
	m.Unversioned[field.DBName] = true
	return nil
}

// relate finds the relations that lead to checked models.
func (m *Model) relate(withoutVersions bool) {
	all := &m.Schema.Relationships
	for _, relation := range slices.Concat(all.HasOne, all.HasMany) {
		m.Children = m.Children || !withoutVersions && (IsVersioned(relation.FieldSchema) || IsPart(relation.FieldSchema)) || isTagged(relation.FieldSchema, "fence")
	}
	for _, relation := range all.BelongsTo {
		m.KeyLinked = m.KeyLinked || slices.ContainsFunc(relation.References, func(ref *schema.Reference) bool { return ref.ForeignKey.PrimaryKey })
	}
	m.Crossed = crossed(all.BelongsTo)
	for _, relation := range slices.Concat(all.BelongsTo, all.HasMany, all.Many2Many) {
		if IsChecked(relation.FieldSchema) {
			m.Shared = append(m.Shared, relation)
		}
	}
	m.ByOthers = refersByOthers(m.Schema, map[*schema.Schema]bool{})
}

// IsChecked reports whether a field of the model has the tag of a version or of a fence.
func IsChecked(s *schema.Schema) bool { return IsVersioned(s) || isTagged(s, "fence") }

// IsVersioned reports whether a field of the model has the tag of a version.
func IsVersioned(s *schema.Schema) bool { return isTagged(s, "version") }

// IsPart reports whether a field of the model has the tag of a root.
func IsPart(s *schema.Schema) bool { return isTagged(s, "root") }

func isTagged(s *schema.Schema, with string) bool {
	for _, field := range s.Fields {
		word, _, _ := strings.Cut(field.Tag.Get("gormlock"), ",")
		if strings.TrimSpace(word) == with {
			return true
		}
	}
	return false
}

func (m *Model) readTag(db *gorm.DB, field *schema.Field, withoutVersions bool) error {
	words := strings.Split(field.Tag.Get("gormlock"), ",")
	word := strings.TrimSpace(words[0])
	if withoutVersions && word != "fence" {
		return nil
	}
	if err := shadowed(m.Schema, field); word != "" && err != nil {
		return err
	}
	switch word {
	case "version":
		if m.Column != nil {
			return secondVersion(m.Column)
		}
		column, err := column.ParseVersion(db, field, words[1:])
		m.Column = column
		return err
	case "unversioned":
		return m.readUnversioned(field, words[1:])
	case "fence":
		if m.Fence != nil {
			return fmt.Errorf("a second fence field beside %s: keep one", m.Fence.Field.Name)
		}
		column, err := column.ParseFence(db, field, words[1:])
		m.Fence = column
		return err
	case "root":
		return m.readRoot(db, field, words[1:])
	case "":
	default:
		return fmt.Errorf("unknown word %q in the tag `gormlock`, which begins with version, unversioned, fence or root", words[0])
	}
	return nil
}
