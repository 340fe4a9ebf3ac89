package aggregate

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/reload"
	"github.com/gormlock/gormlock/internal/statement"
)

// root is a row whose version is to move.
type root struct {
	schema *schema.Schema
	key    []any
	name   string          // of table and key
	loaded []reflect.Value // structs of it that parts hold, which are compared
}

// movingSetting holds the names of the roots whose move a statement is a part of.
const movingSetting = "gormlock:moving"

// BeforeCreate moves the roots of rows that are about to be created, or found by an upsert.
func BeforeCreate(db *gorm.DB) { before(db, (*part).created) }

// BeforeUpdate moves the roots that rows belong to, and those that they are moved to.
func BeforeUpdate(db *gorm.DB) { before(db, (*part).updated) }

// BeforeDelete moves the roots of rows that are about to be deleted.
func BeforeDelete(db *gorm.DB) { before(db, (*part).deleted) }

// before runs right before a write, behind its hooks and what it belongs to.
func before(db *gorm.DB, write func(*part) error) {
	m := model.Of(db)
	if db.Error != nil || db.DryRun || m == nil || m.Err != nil || len(m.Roots) == 0 {
		return
	}
	if statement.Transaction(db.Statement) == nil {
		fault.Add(db, fmt.Errorf("%w: %s has a root, whose version moves with it", fault.ErrNoTransaction, m.Schema.Name))
		return
	}
	p := &part{db: db, model: m}
	if err := write(p); err != nil {
		if errors.Is(err, fault.ErrStale) && statement.IsAssociation(db.Statement) {
			guard.Doom(db, err)
		}
		fault.Add(db, err)
	}
}

// move moves the roots that were found, in the order of their names, each once in a transaction.
func (p *part) move() error {
	roots := p.found
	p.found = nil
	slices.SortFunc(roots, func(a, b *root) int { return strings.Compare(a.name, b.name) })
	value, _ := p.db.Statement.Settings.Load(movingSetting)
	moving, _ := value.([]string)
	for _, written := range []any{p.db.Statement.Model, p.db.Statement.Dest} { // which move by themselves
		for _, key := range p.keys(reflect.ValueOf(written)) {
			moving = append(slices.Clip(moving), nameOf(p.model.Schema, key))
		}
	}
	for _, r := range roots {
		if slices.Contains(moving, r.name) {
			continue // it is a part of a part of itself
		}
		session := p.db.Session(&gorm.Session{NewDB: true}).Set(movingSetting, append(slices.Clip(moving), r.name)).Session(&gorm.Session{})
		if err := r.move(session); err != nil {
			return err
		}
	}
	return nil
}

// move moves the version of the root, unless the transaction has done so. A struct of it that was read must be at its version.
func (r *root) move(db *gorm.DB) error {
	m := model.OfSchema(db, r.schema)
	if m.Err != nil {
		return m.Err
	}
	for _, row := range r.loaded {
		held := m.Column.Read(row)
		if guard.Moved(db.Statement, m, r.key) {
			if to, touched := guard.Touched(db.Statement, m, r.key, held); touched {
				guard.Adopt(db.Statement, m, row, to)
				continue
			}
			if err := guard.MustBeAt(db, m, row, r.key); err != nil {
				return err
			}
			continue
		}
		if err := reload.Touch(db, row.Addr().Interface()); err != nil {
			return r.gone(m, err)
		}
	}
	if guard.Moved(db.Statement, m, r.key) {
		return nil
	}
	row := reflect.New(r.schema.ModelType)
	for i, field := range r.schema.PrimaryFields {
		if err := field.Set(db.Statement.Context, row.Elem(), r.key[i]); err != nil {
			return err
		}
	}
	return r.gone(m, reload.Touch(db.Clauses(guard.IgnoreVersion()), row.Interface()))
}

// gone makes of a root that is not there what it is: a stale one.
func (r *root) gone(m *model.Model, err error) error {
	if !errors.Is(err, gorm.ErrRecordNotFound) {
		return err
	}
	e := &fault.Stale{Table: m.Schema.Table, Op: guard.OpTouch.String(), PrimaryKey: map[string]any{}, Deleted: true}
	for i, field := range r.schema.PrimaryFields {
		e.PrimaryKey[field.DBName] = r.key[i]
		e.Keys = append(e.Keys, field.DBName)
	}
	return e.Err()
}

func nameOf(s *schema.Schema, key []any) string { return s.Table + " " + statement.KeyName(key) }

// part is a statement that writes rows of a model with a root.
type part struct {
	db    *gorm.DB
	model *model.Model
	found []*root
}

// add adds the root with the key that foreign returns for each field of the child; a zero part of it is none. loaded is a
// struct of it, if there is one.
func (p *part) add(relation *schema.Relationship, foreign func(*schema.Field) any, loaded reflect.Value) {
	key := make([]any, len(relation.FieldSchema.PrimaryFields))
	some := false
	for _, ref := range relation.References {
		value := foreign(ref.ForeignKey)
		if v := reflect.ValueOf(value); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return
		} else if v.Kind() == reflect.Pointer {
			value = v.Elem().Interface()
		}
		some = some || !reflect.ValueOf(value).IsZero()
		key[slices.Index(relation.FieldSchema.PrimaryFields, ref.PrimaryKey)] = value
	}
	if !some {
		return
	}
	name := nameOf(relation.FieldSchema, key)
	i := slices.IndexFunc(p.found, func(r *root) bool { return r.name == name })
	if i < 0 {
		i = len(p.found)
		p.found = append(p.found, &root{schema: relation.FieldSchema, key: key, name: name})
	}
	if loaded.IsValid() {
		p.found[i].loaded = append(p.found[i].loaded, loaded)
	}
}

// addOf adds the roots of a struct of the model.
func (p *part) addOf(row reflect.Value) {
	stmt := p.db.Statement
	for _, relation := range p.model.Roots {
		p.add(relation, func(field *schema.Field) any {
			value, _ := field.ValueOf(stmt.Context, row)
			return value
		}, p.loaded(relation, row))
	}
}

// loaded is the root that a struct holds, if it was read and is the one of its foreign key.
func (p *part) loaded(relation *schema.Relationship, row reflect.Value) reflect.Value {
	stmt := p.db.Statement
	place := statement.Place(relation.Field, row)
	for place.IsValid() && place.Kind() == reflect.Pointer {
		place = place.Elem()
	}
	m := model.OfSchema(p.db, relation.FieldSchema)
	if !place.IsValid() || m.Column == nil || !place.CanAddr() {
		return reflect.Value{}
	}
	held, _ := statement.KeyOf(stmt, relation.FieldSchema, place)
	if held == nil || !m.Column.Loaded(m.Column.Read(place)) {
		return reflect.Value{}
	}
	for _, ref := range relation.References {
		key, _ := ref.PrimaryKey.ValueOf(stmt.Context, place)
		foreign, _ := ref.ForeignKey.ValueOf(stmt.Context, row)
		if v := reflect.ValueOf(foreign); v.Kind() == reflect.Pointer && !v.IsNil() {
			foreign = v.Elem().Interface()
		}
		if statement.KeyName([]any{key}) != statement.KeyName([]any{foreign}) {
			return reflect.Value{}
		}
	}
	return place
}

// addAll adds the roots of the structs of the model that value is or holds.
func (p *part) addAll(value reflect.Value) {
	statement.EachStruct(value, func(row reflect.Value) {
		if row.Type() == p.model.Schema.ModelType {
			p.addOf(row)
		}
	})
}

// keys are those of the structs of the model that value is or holds.
func (p *part) keys(value reflect.Value) [][]any {
	var keys [][]any
	statement.EachStruct(value, func(row reflect.Value) {
		if row.Type() != p.model.Schema.ModelType {
			return
		}
		if key, _ := statement.KeyOf(p.db.Statement, p.model.Schema, row); key != nil {
			keys = append(keys, key)
		}
	})
	return keys
}

// stored adds the roots of the rows that are there under these conditions, and locks the rows: they stay where they are.
func (p *part) stored(conditions ...clause.Expression) ([]reflect.Value, error) {
	stmt, s := p.db.Statement, p.model.Schema
	var columns []string
	for _, field := range s.PrimaryFields {
		columns = append(columns, field.DBName)
	}
	for _, key := range p.foreignKeys() {
		if !slices.Contains(columns, key.DBName) {
			columns = append(columns, key.DBName)
		}
	}
	rows := reflect.New(reflect.SliceOf(s.ModelType))
	query := p.db.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Model(rows.Interface()).Select(columns)
	statement.SameTable(query.Statement, stmt)
	query.Statement.Unscoped = stmt.Unscoped
	if len(conditions) > 0 {
		query = query.Clauses(clause.Where{Exprs: conditions})
	}
	if statement.IsPostgres(p.db) {
		query = query.Clauses(clause.Locking{Strength: "NO KEY UPDATE"})
	}
	if query = query.Find(rows.Interface()); query.Error != nil {
		return nil, query.Error
	}
	found := make([]reflect.Value, rows.Elem().Len())
	for i := range found {
		found[i] = rows.Elem().Index(i)
		p.addOf(found[i])
	}
	return found, nil
}
