package aggregate

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
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

	following []reflect.Value // those that are not, and get the new version if they have the one that it moves from
}

// movingSetting holds the names of the roots whose move a statement is a part of.
const movingSetting = "gormlock:moving"

// move moves the roots that were found, in the order of their names, each once in a transaction.
func (p *part) move() error {
	if p.err != nil {
		return p.err
	}
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
		p.done[r.name] = nil
		if slices.Contains(moving, r.name) {
			continue // it is a part of a part of itself
		}
		session := p.db.Session(&gorm.Session{NewDB: true}).Set(movingSetting, append(slices.Clip(moving), r.name)).Session(&gorm.Session{})
		session.Statement.Unscoped = p.unscoped
		if err := r.move(session.Session(&gorm.Session{})); err != nil {
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
	if !guard.Moved(db.Statement, m, r.key) {
		if err := reload.TouchKey(db, reflect.New(r.schema.ModelType).Interface(), r.key); err != nil {
			return r.gone(m, err)
		}
	}
	for _, row := range r.following {
		if to, touched := guard.Touched(db.Statement, m, r.key, m.Column.Read(row)); touched {
			guard.Adopt(db.Statement, m, row, to)
		}
	}
	return nil
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
