package gormlock

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// versionedModel is what the tags of a model say about its version: nothing in most models.
type versionedModel struct {
	schema      *schema.Schema
	column      *versionColumn  // nil: the model has none
	fence       *fenceColumn    // nil: the model has none
	unversioned map[string]bool // columns that are checked and do not bump
	err         error           // the tags are wrong
	table       string          // what GORM calls the table inside a statement
	sql         *versionSQL
	claim       *claimSQL
	weighs      bool                      // some columns do not bump, or are set with others
	indirect    []*schema.Field           // columns that hold a pointer, or are reached through one
	movesKeys   atomic.Bool               // the server changes the key of a row that is claimed
	places      atomic.Pointer[rowPlaces] // where the columns of the last claim went
	children    bool                      // a has-one or has-many relation leads to a versioned model
}

// versionCache holds the versionedModel of each schema that was met.
type versionCache struct{ models sync.Map }

func (c *versionCache) of(db *gorm.DB, s *schema.Schema) *versionedModel {
	if m, ok := c.models.Load(s); ok {
		return m.(*versionedModel)
	}
	m, _ := c.models.LoadOrStore(s, parseVersionTags(db, s))
	return m.(*versionedModel)
}

// versionedModelOf returns what the tags of the statement's model say, and nil where there is no model or no plugin.
func versionedModelOf(db *gorm.DB) *versionedModel {
	if db.Statement.Schema == nil {
		return nil
	}
	plugin := pluginOf(db)
	if plugin == nil {
		return nil
	}
	return plugin.versions.of(db, db.Statement.Schema)
}

// readVersionTags lets a read fail on wrong tags too: they are noticed on the first use of the model.
func readVersionTags(db *gorm.DB) {
	if m := versionedModelOf(db); m != nil && m.err != nil {
		fail(db, m.err)
	}
}

func parseVersionTags(db *gorm.DB, s *schema.Schema) *versionedModel {
	m := &versionedModel{schema: s, table: tableInStatement(s.Table)}
	without := pluginOf(db).withoutVersions
	for _, field := range s.Fields {
		if err := m.readTag(db, field, without); err != nil {
			m.err = fmt.Errorf("gormlock: %s.%s: %w", s.Name, field.Name, err)
			return m
		}
	}
	if m.column == nil && len(m.unversioned) > 0 {
		m.err = fmt.Errorf("gormlock: %s has unversioned fields and no version field: tag one `gormlock:\"version\"`", s.Name)
		return m
	}
	if m.column != nil && len(s.PrimaryFields) == 0 {
		m.err = fmt.Errorf("gormlock: %s.%s: a versioned model needs a primary key", s.Name, m.column.field.Name)
		return m
	}
	m.weighs = len(m.unversioned) > 0
	for _, field := range s.FieldsByDBName {
		m.weighs = m.weighs || field.AutoUpdateTime > 0
		if field.FieldType.Kind() == reflect.Pointer || throughPointer(field) {
			m.indirect = append(m.indirect, field)
		}
	}
	for _, relations := range [][]*schema.Relationship{s.Relationships.HasOne, s.Relationships.HasMany} {
		for _, relation := range relations {
			m.children = m.children || !without && hasVersionTag(relation.FieldSchema)
		}
	}
	if m.column != nil {
		m.sql = newVersionSQL(db, m, m.table)
	}
	m.claim = newClaimSQL(db, m, m.table)
	return m
}

// tableInStatement is the name a statement knows the table by: without the schema it may be written with.
func tableInStatement(table string) string {
	if parts := strings.Split(table, "."); len(parts) == 2 {
		return parts[1]
	}
	return table
}

func throughPointer(field *schema.Field) bool {
	for _, i := range field.StructField.Index {
		if i < 0 {
			return true
		}
	}
	return false
}

func hasVersionTag(s *schema.Schema) bool {
	for _, field := range s.Fields {
		word, _, _ := strings.Cut(field.Tag.Get("gormlock"), ",")
		if strings.TrimSpace(word) == "version" {
			return true
		}
	}
	return false
}

func (m *versionedModel) readTag(db *gorm.DB, field *schema.Field, withoutVersions bool) error {
	words := strings.Split(field.Tag.Get("gormlock"), ",")
	word := strings.TrimSpace(words[0])
	if withoutVersions && word != "fence" {
		return nil
	}
	switch word {
	case "version":
		if m.column != nil {
			return fmt.Errorf("a second version field beside %s: keep one", m.column.field.Name)
		}
		column, err := parseVersionColumn(db, field, words[1:])
		m.column = column
		return err
	case "unversioned":
		if len(words) > 1 {
			return fmt.Errorf("the tag `unversioned` takes nothing more, not %q", words[1])
		}
		if field.DBName == "" {
			return fmt.Errorf("an unversioned field must be a column")
		}
		if m.unversioned == nil {
			m.unversioned = map[string]bool{}
		}
		m.unversioned[field.DBName] = true
	case "fence":
		if m.fence != nil {
			return fmt.Errorf("a second fence field beside %s: keep one", m.fence.field.Name)
		}
		column, err := parseFenceColumn(db, field, words[1:])
		m.fence = column
		return err
	case "":
	default:
		return fmt.Errorf("unknown word %q in the tag `gormlock`: it starts with version, unversioned or fence", words[0])
	}
	return nil
}

func parseVersionColumn(db *gorm.DB, field *schema.Field, words []string) (*versionColumn, error) {
	c := &versionColumn{field: field, initial: 1, tick: time.Microsecond}
	if field.DBName == "" {
		return nil, fmt.Errorf("a version field must be a column")
	}
	if field.PrimaryKey {
		return nil, fmt.Errorf("a version field cannot be the primary key")
	}
	if field.Serializer != nil || !c.shapedAs(field.FieldType) {
		return nil, fmt.Errorf("a version field is an integer, a pointer to one, a sql.Null integer or a time.Time, not %s", field.FieldType)
	}
	given := ""
	for _, word := range words {
		word = strings.TrimSpace(word)
		number, isInitial := strings.CutPrefix(word, "initial=")
		switch {
		case isInitial:
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("initial=%s: the first version is a whole number from 0", number)
			}
			c.initial, given = n, word
		case c.mode == "" && (word == railsMode || word == hibernateMode || word == xminMode):
			c.mode = word
		case c.mode != "":
			return nil, fmt.Errorf("%q after %s: a version has one mode", word, c.mode)
		default:
			return nil, fmt.Errorf("unknown mode %q: it is rails, hibernate, xmin or initial=N", word)
		}
	}
	if (c.mode == railsMode || c.mode == hibernateMode) && given == "" {
		c.initial = 0
	}
	switch {
	case c.mode == xminMode && given != "":
		return nil, fmt.Errorf("%s: the server sets xmin: leave it out", given)
	case c.mode == xminMode:
		return c, c.asSystemColumn(field)
	case c.kind == temporalVersion && given != "":
		return nil, fmt.Errorf("%s: a time has no first number: leave it out", given)
	case c.kind == temporalVersion && c.mode == railsMode:
		return nil, fmt.Errorf("a Rails lock column is an integer, not %s", field.FieldType)
	case !field.Creatable || !field.Updatable || !field.Readable:
		return nil, fmt.Errorf("a version column is read and written: take the permission out of the tag `gorm`")
	}
	if c.kind == temporalVersion {
		c.tick = tickOf(field)
		return c, nil
	}
	c.largest = largestIn(db, field, c.mode)
	if value, ok := field.DefaultValueInterface.(int64); ok && value != c.initial {
		return nil, fmt.Errorf("default:%d disagrees with the first version %d: write default:%d", value, c.initial, c.initial)
	}
	return c, nil
}

// asSystemColumn settles what holds for xmin: it is read and never written, and no migration creates it.
func (c *versionColumn) asSystemColumn(field *schema.Field) error {
	if field.FieldType.Kind() != reflect.Uint32 {
		return fmt.Errorf("the tag `version,xmin` stands on a uint32 field, not on %s", field.FieldType)
	}
	if field.DBName != "xmin" || field.Creatable || field.Updatable || !field.IgnoreMigration {
		return fmt.Errorf("the system column is tagged `gorm:\"column:xmin;->;-:migration\" gormlock:\"version,xmin\"`")
	}
	c.kind, c.initial = systemVersion, 0
	return nil
}

// tickOf is the precision of a temporal column: what is written must come back as it was.
func tickOf(field *schema.Field) time.Duration {
	precision, kind := 6, strings.ToLower(field.TagSettings["TYPE"])
	if open := strings.IndexByte(kind, '('); open >= 0 {
		if end := strings.IndexByte(kind, ')'); end > open {
			if n, err := strconv.Atoi(strings.TrimSpace(kind[open+1 : end])); err == nil {
				precision = n
			}
		}
	} else if field.Precision > 0 {
		precision = field.Precision
	}
	return time.Second / time.Duration(math.Pow10(max(0, min(6, precision))))
}

// largestIn is the largest version the column holds: the field's type, or what the column is said to be, decides. A
// Rails lock column is an int4 unless its tag says otherwise.
func largestIn(db *gorm.DB, field *schema.Field, mode string) int64 {
	largest := int64(math.MaxInt64)
	kind := field.IndirectFieldType
	if kind.Kind() == reflect.Struct {
		kind = kind.Field(0).Type
	}
	switch bits := kind.Bits(); {
	case kind.Kind() >= reflect.Uint && kind.Kind() <= reflect.Uint64 && bits < 64:
		largest = 1<<bits - 1
	case kind.Kind() >= reflect.Int && kind.Kind() <= reflect.Int64:
		largest = 1<<(bits-1) - 1
	}
	column := strings.ToLower(db.DataTypeOf(field))
	_, declared := field.TagSettings["TYPE"]
	switch four := column == "integer" || column == "int" || column == "int4"; {
	case strings.HasPrefix(column, "smallint"), column == "int2":
		largest = min(largest, math.MaxInt16)
	case four && (isPostgres(db) || mode == railsMode), mode == railsMode && !declared:
		largest = min(largest, math.MaxInt32)
	}
	return largest
}
