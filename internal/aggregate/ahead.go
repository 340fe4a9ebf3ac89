package aggregate

import (
	"errors"
	"maps"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// likely is a root that structs of parts name. Only the rows of the parts show whether it is their root.
type likely struct {
	root

	relation *schema.Relationship
	has      [][]any // keys of parts that should have it
	gets     [][]any // keys of parts to which the statement gives it
}

// whenSetting is the setting with the conditions under which a root moves.
const whenSetting = "gormlock:when"

// ahead moves the roots that the structs of parts name, if the rows of the parts exist and have these roots. So a root is
// locked before its parts, and no root moves if none of its parts is written.
func (p *part) ahead(assigned map[string]any, of ...reflect.Value) error {
	if dialect.Of(p.db).IsMySQL() { // a sub-query of an UPDATE locks what it reads, and cannot read the table itself
		for _, value := range of {
			p.eachKeyed(value, func(row reflect.Value, _ []any) { p.addOf(row) })
		}
		return p.move()
	}
	roots := map[string]*likely{}
	for _, value := range of {
		p.eachKeyed(value, func(row reflect.Value, key []any) {
			for _, relation := range p.model.Roots {
				p.likely(roots, relation, row, key, assigned)
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(roots)) {
		if err := p.moveLikely(roots[name]); err != nil {
			return err
		}
	}
	return nil
}

// eachKeyed visits the structs of the model that have a key.
func (p *part) eachKeyed(value reflect.Value, visit func(row reflect.Value, key []any)) {
	statement.EachStruct(value, func(row reflect.Value) {
		if row.Type() != p.model.Schema.ModelType {
			return
		}
		if key := p.keyOf(row); key != nil {
			visit(row, key)
		}
	})
}

// likely adds the root that a struct names, and the one that the statement gives its row.
func (p *part) likely(roots map[string]*likely, relation *schema.Relationship, row reflect.Value, key []any, assigned map[string]any) {
	of := func(foreign []any) *likely {
		name := nameOf(relation.FieldSchema, foreign)
		if roots[name] == nil {
			roots[name] = &likely{root: root{schema: relation.FieldSchema, key: foreign, name: name}, relation: relation}
		}
		return roots[name]
	}
	had := p.foreignOf(relation, row)
	if gets := p.foreignAfter(relation, row, assigned); gets != nil {
		l := of(gets)
		l.gets = append(l.gets, key)
		if had != nil && statement.KeyName(had) == statement.KeyName(gets) {
			return
		}
	}
	if had != nil {
		l := of(had)
		l.has = append(l.has, key)
	}
}

// foreignAfter returns the key of the root that a row has after these columns are assigned. It is nil if none of them
// belongs to the key, or if only the server knows the value.
func (p *part) foreignAfter(relation *schema.Relationship, row reflect.Value, assigned map[string]any) []any {
	key, some, moves := make([]any, len(relation.FieldSchema.PrimaryFields)), false, false
	for _, ref := range relation.References {
		value, is := assigned[ref.ForeignKey.DBName]
		if !is {
			value, _ = ref.ForeignKey.ValueOf(p.db.Statement.Context, row)
		}
		if value = plain(value); value == nil || value == any(leftToServer{}) {
			return nil
		}
		moves, some = moves || is, some || !reflect.ValueOf(value).IsZero() || mayBeNull(ref.ForeignKey)
		key[slices.Index(relation.FieldSchema.PrimaryFields, ref.PrimaryKey)] = value
	}
	if !moves || !some {
		return nil
	}
	return key
}

// moveLikely moves a root if a row has it, or exists and gets it. Otherwise the root stays, and nothing is compared.
func (p *part) moveLikely(l *likely) error {
	m := model.OfSchema(p.db, l.schema)
	if m.Err != nil || m.Column == nil || p.mayWrite(&l.root) || guard.Moved(p.db.Statement, m, l.key) {
		return m.Err
	}
	conditions := []clause.Expression{p.condition(l)}
	if outer, nested := p.db.Statement.Settings.Load(whenSetting); nested {
		conditions = append(conditions, outer.([]clause.Expression)...) //nolint:forcetypeassert // stored below
	}
	if err := p.take(&l.root); err != nil {
		return nil //nolint:nilerr // it is an error only if the rows have this root
	}
	session := p.sessionOf(&l.root, whenSetting, conditions)
	if session == nil {
		return nil
	}
	var first reflect.Value
	if len(l.loaded) > 0 {
		first = l.loaded[0]
	}
	switch err := l.touch(session, first, conditions...); {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return nil
	case err != nil:
		return l.gone(m, err)
	}
	if first.IsValid() {
		l.loaded = l.loaded[1:]
	}
	p.done[l.name], l.moved = true, true
	return l.move(p.sessionOf(&l.root))
}

// condition is that one of the parts has the root, or exists and gets it.
func (p *part) condition(l *likely) clause.Expression {
	there := func(conditions ...clause.Expression) *gorm.DB {
		query := p.db.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Model(reflect.New(p.model.Schema.ModelType).Interface()).Select("1")
		statement.SameTable(query.Statement, p.db.Statement)
		query.Statement.Unscoped = p.db.Statement.Unscoped
		return query.Clauses(clause.Where{Exprs: conditions})
	}
	var sql string
	var queries []any
	if len(l.gets) > 0 {
		sql, queries = "EXISTS (?)", append(queries, there(guard.KeyIn(p.model.Schema, l.gets)))
	}
	if len(l.has) > 0 {
		if sql != "" {
			sql += " OR "
		}
		has := []clause.Expression{guard.KeyIn(p.model.Schema, l.has)}
		for _, ref := range l.relation.References {
			value := l.key[slices.Index(l.schema.PrimaryFields, ref.PrimaryKey)]
			has = append(has, clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: ref.ForeignKey.DBName}, Value: value})
		}
		sql, queries = sql+"EXISTS (?)", append(queries, there(has...))
	}
	return clause.Expr{SQL: "(" + sql + ")", Vars: queries}
}
