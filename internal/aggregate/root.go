package aggregate

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/reload"
	"github.com/gormlock/gormlock/internal/statement"
)

// root is a row whose version must move.
type root struct {
	schema *schema.Schema
	key    []any
	name   string          // of table and key
	loaded []reflect.Value // structs of it that parts hold, which are compared
	moved  bool            // by this statement

	perhaps bool // a part of its key is zero, so there may be no such root

	copied    []reflect.Value // structs that count as not read afterwards
	following []reflect.Value // structs that are not compared; they get the new version if they have the old one
}

// move moves the roots that were found, in the order of their names, each once in a transaction.
func (p *part) move() error {
	roots := p.found
	p.found = nil
	slices.SortFunc(roots, func(a, b *root) int { return strings.Compare(a.name, b.name) })
	for _, r := range roots {
		if err := p.take(r); err != nil {
			return err
		}
		if p.mayWrite(r) {
			p.named = append(p.named, r)
			continue
		}
		p.follow(r)
		if session := p.sessionOf(r); session != nil {
			if err := r.move(session); err != nil {
				return err
			}
		}
	}
	return nil
}

// sessionOf returns the session in which a root moves. It is nil if the root moves already, and is a part of a part of itself.
func (p *part) sessionOf(r *root, settings ...any) *gorm.DB {
	value, _ := p.db.Statement.Settings.Load(statement.MovingRoots)
	moving, _ := value.([]string)
	if slices.Contains(moving, r.name) {
		return nil
	}
	session := p.db.Session(&gorm.Session{NewDB: true}).Set(statement.MovingRoots, append(slices.Clip(moving), r.name)).Set(outerSetting, p)
	for i := 0; i+1 < len(settings); i += 2 {
		session = session.Set(settings[i].(string), settings[i+1]) //nolint:forcetypeassert // the keys are names
	}
	if asked.Of(p.db.Statement).IgnoresFence() && model.OfSchema(p.db, r.schema).IsFenced() {
		session.Statement.Clauses[asked.ClauseName] = clause.Clause{Expression: &asked.Intent{IgnoreFence: true}}
	}
	session = session.Session(&gorm.Session{})
	session.Statement.Unscoped = p.unscoped
	return session.Session(&gorm.Session{})
}

// move moves the version of the root, unless the transaction has already done so. A struct of the root that was read must be
// at the root's version.
func (r *root) move(db *gorm.DB) error {
	m := model.OfSchema(db, r.schema)
	if m.Err != nil {
		return m.Err
	}
	for _, row := range r.loaded {
		held := m.Column.Read(row)
		if r.moved || guard.Moved(db.Statement, m, r.key) {
			if to, touched := guard.Touched(db.Statement, m, r.key, held); touched {
				guard.Adopt(db.Statement, m, row, to)
				continue
			}
			if err := guard.MustBeAt(db, m, row, r.key); err != nil {
				return err
			}
			continue
		}
		if err := r.touch(db, row); err != nil {
			return r.gone(m, err)
		}
		r.moved = true
	}
	if !r.moved && !guard.Moved(db.Statement, m, r.key) {
		if err := r.touchByKey(db); err != nil {
			return r.gone(m, err)
		}
	}
	for _, row := range r.copied {
		guard.Adopt(db.Statement, m, row, m.Column.Unread())
	}
	for _, row := range r.following {
		if to, touched := guard.Touched(db.Statement, m, r.key, m.Column.Read(row)); touched {
			guard.Adopt(db.Statement, m, row, to)
		}
	}
	return nil
}

// touchByKey moves the root, if there is one.
func (r *root) touchByKey(db *gorm.DB) error {
	if !r.perhaps {
		return r.touch(db, reflect.Value{})
	}
	err := r.touch(db, reflect.Value{}, clause.Expr{SQL: "1=1"}) // under a condition it may find no row
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return nil
	}
	return err
}

// touch moves the root, with a struct of it or with its key.
func (r *root) touch(db *gorm.DB, row reflect.Value, conditions ...clause.Expression) error {

	if row.IsValid() {
		return reload.Touch(db, row.Addr().Interface(), conditions...)
	}
	return reload.TouchKey(db, reflect.New(r.schema.ModelType).Interface(), r.key, conditions...)
}

// gone turns the error of a missing root into that of a stale one.
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
