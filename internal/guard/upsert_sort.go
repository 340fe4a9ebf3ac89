package guard

import (
	"cmp"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/children"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// sortStructs finds the structs that were read from their rows. Their versions are checked. For the others the version only moves.
func (p *plan) sortStructs(stmt *gorm.Statement, onKey bool) error {
	p.expand()
	p.upsert.rows = make([]upsertRow, len(p.rows))
	p.version.later = p.version.First(stmt.NowFunc())
	names := map[string]int{}
	for i := range p.rows {
		row := &p.rows[i]
		if err := cmp.Or(p.holdVersion(stmt, i), p.holdKey(stmt, row, onKey)); err != nil {
			return err
		}
		if row.Key == nil {
			continue
		}
		if twin, ok := names[row.name]; ok && p.rows[twin].Struct.CanAddr() && (!p.upsert.skips || !statement.InLinking()) { // a link that appears twice is one link
			return fmt.Errorf("gormlock: %s: two elements of one upsert have this key", p.rowName(stmt, row.Key))
		}
		names[row.name] = i
		p.sortStruct(stmt, i, onKey)
		if err := cmp.Or(p.keepsKey(stmt, i, onKey), p.propose(stmt, i)); err != nil {
			return err
		}
	}
	return nil
}

// holdVersion notes the version that a struct holds, and the first version of a new row.
func (p *plan) holdVersion(stmt *gorm.Statement, i int) error {
	v, row, now := &p.version, &p.rows[i], stmt.NowFunc()
	row.held = p.heldByCaller(stmt, i)
	row.Expected, row.next = row.held, row.held
	if next := v.Next(row.held, now); next.Time().After(v.later.Time()) {
		v.later = next
	}
	switch {
	case v.Unset(row.held):
		row.next = v.First(now)
	case row.held.N < 0:
		return negative(stmt, row.held.N)
	}
	return nil
}

// holdKey notes the key of the row that a struct stands for. It refuses a struct that may find its row but was not read from it.
func (p *plan) holdKey(stmt *gorm.Statement, row *Row, onKey bool) error {
	v, u := &p.version, p.upsert
	key := p.keyOfRow(stmt, row)
	switch {
	case p.intent.Ignores():
	case v.IsUnread(row.held) && !u.skips && !u.child:
		return p.missing(stmt, key, nil) // even without a key, because it may find its row by another column
	case key == nil && !v.Unset(row.held) && !p.intent.Preserves() && u.meetsOthers(stmt, onKey):
		return p.withoutKey()
	}
	if key != nil {
		row.Key, row.name = key, statement.KeyName(key)
	}
	return nil
}

// meetsOthers reports whether a struct without a key may update a row that it meets by another column.
func (u *upsert) meetsOthers(stmt *gorm.Statement, onKey bool) bool {
	return u.updates && !u.child && (!onKey || !u.saves && dialect.Of(stmt.DB).FindsByAnyIndex())
}

// keyOfRow is the key of the row that a struct stands for. It is nil if the row may be new, with a key that the server makes. A key of zeros only
// is a row's key if the struct was read.
func (p *plan) keyOfRow(stmt *gorm.Statement, row *Row) (key []any) {
	v, s := &p.version, p.model.Schema
	key, _ = statement.KeyOf(stmt, s, row.Struct)
	switch {
	case key != nil && lacksGenerated(s, row.Struct):
		return nil
	case key == nil && (!v.Unset(row.held) || v.IsUnread(row.held)) && !slices.ContainsFunc(s.PrimaryFields, func(field *schema.Field) bool { return field.HasDefaultValue || field.AutoIncrement }):
		for _, field := range s.PrimaryFields {
			part, _ := field.ValueOf(stmt.Context, row.Struct)
			key = append(key, part)
		}
	}
	return key
}

// sortStruct says what a struct with a key stands for.
func (p *plan) sortStruct(stmt *gorm.Statement, i int, onKey bool) {
	v, u, row, r := &p.version, p.upsert, &p.rows[i], &p.upsert.rows[i]
	unset, isNew := v.Unset(row.held), p.keyIsNew(stmt, i)
	read := !unset && (!u.skips || u.child) || unset && v.ZeroIsLoaded() && !v.IsUnread(row.held) && !u.skips && !p.intent.Preserves() && (u.strict || u.links || onKey)
	came, fromNone := children.MovedHere(stmt, row.Struct)
	r.loaded = read && !p.intent.Ignores()
	r.unread = !read && u.strict
	r.moves = u.links && came
	r.mayBeNew = isNew || unset && !u.strict && (!u.links || fromNone)
	r.exists = u.exist && read && !unset && !r.loaded
	// A hook, or its belongs-to, may have set the key of an existing row. Only PostgreSQL can be asked.
	r.unsure = !r.loaded && u.links && (statement.IsPostgres(stmt.DB) || !isNew)
}

// keepsKey refuses a statement in which the struct's row would get another key, or be found by one.
func (p *plan) keepsKey(stmt *gorm.Statement, i int, onKey bool) error {
	u, s, row, r := p.upsert, p.model.Schema, &p.rows[i], &p.upsert.rows[i]
	if (r.loaded || u.saves || u.updates && onKey) && !p.keyIsNew(stmt, i) {
		if err := p.refuseWithoutKey(stmt, row.Key); err != nil {
			return err
		}
	}
	if r.loaded && u.saves && (p.model.KeyLinked || !stmt.SkipHooks && (s.BeforeSave || s.BeforeCreate)) {
		return p.rekeyedAt(stmt, i)
	}
	return nil
}

// propose chooses the version of a struct that was read for the INSERT: the server compares it with the row's version.
func (p *plan) propose(stmt *gorm.Statement, i int) error {
	v, u, row, r := &p.version, p.upsert, &p.rows[i], &p.upsert.rows[i]
	if !r.loaded {
		if r.exists {
			row.next, r.exists = v.Apart(row.held)
		}
		return nil
	}
	if row.next = row.held; row.held.Null {
		row.next = v.Zero()
	}
	if v.IsInteger() && !u.skips && !p.intent.Preserves() && (!u.links || r.moves) {
		if err := p.fullAt(stmt, row); err != nil {
			return err
		}
	}
	mysql, sqlite := dialect.Of(stmt.DB).IsMySQL(), dialect.Of(stmt.DB).IsSQLite()
	if u.skips && mysql || u.links && !r.mayBeNew && (v.IsInteger() || !sqlite) {
		row.next, r.apart = v.Apart(row.next)
	}
	return nil
}
