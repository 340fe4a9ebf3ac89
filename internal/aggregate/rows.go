package aggregate

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// columns are the columns that identify a row and its roots.
func (p *part) columns() []*schema.Field {
	columns := slices.Clone(p.model.Schema.PrimaryFields)
	for _, key := range p.foreignKeys() {
		if !slices.Contains(columns, key) {
			columns = append(columns, key)
		}
	}
	return columns
}

// read reads what identifies the rows under these conditions, and their roots.
func (p *part) read(unscoped, lock bool, conditions ...clause.Expression) ([]reflect.Value, error) {
	var names []string
	for _, field := range p.columns() {
		names = append(names, field.DBName)
	}
	found, err := guard.Rows(p.db, p.model, names, unscoped, lock, conditions...)
	if sqlstate.Of(err) == sqlstate.SerializationFailure {
		return nil, guard.Overtaken(p.db, p.model, p.op(), p.keysOfStatement(), err)
	}
	return found, err
}

// op is what the statement does.
func (p *part) op() guard.Op {
	switch {
	case p.deletes:
		return guard.OpDelete
	case slices.Contains(p.db.Statement.BuildClauses, "VALUES"):
		return guard.OpUpsert
	}
	return guard.OpUpdate
}

// stored finds the existing rows that meet these conditions, and locks them, so they keep their roots.
func (p *part) stored(unscoped bool, conditions ...clause.Expression) (err error) {
	p.there, err = p.read(unscoped, true, conditions...)
	return err
}

// keyOf returns the key of a struct, or nil if it has none.
func (p *part) keyOf(row reflect.Value) []any {
	key, _ := statement.KeyOf(p.db.Statement, p.model.Schema, row)
	return key
}

// storedKey returns the key of a row that was read. It is a key even if it is all zeros.
func (p *part) storedKey(row reflect.Value) []any {
	key := make([]any, len(p.model.Schema.PrimaryFields))
	for i, field := range p.model.Schema.PrimaryFields {
		key[i], _ = field.ValueOf(p.db.Statement.Context, row)
	}
	return key
}

// narrow makes the statement write the rows that were found, and no others. Its own conditions held when they were found.
// Since then, the move of their roots may have made them untrue, and others may have stored further rows that match.
func (p *part) narrow() error {
	stmt := p.db.Statement
	var keys [][]any
	for _, row := range p.there {
		keys = append(keys, p.storedKey(row))
	}
	if !guard.FitIn(p.db, keys) {
		return fmt.Errorf("gormlock: %s: %d rows are too many for one statement that moves their roots: write fewer at a time", p.model.Schema.Name, len(keys))
	}
	p.where, p.narrowed = stmt.Clauses["WHERE"], true
	narrow := p.where
	narrow.Name, narrow.Builder = "WHERE", nil
	narrow.Expression = clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "1=0"}}}
	if len(keys) > 0 {
		narrow.Expression = clause.Where{Exprs: []clause.Expression{guard.KeyIn(p.model.Schema, keys)}}
	}
	stmt.Clauses["WHERE"] = narrow
	return nil
}

// onlyFound makes an upsert update only the rows that were found. A row that was stored since then would leave its root
// without being noticed.
func (p *part) onlyFound(conflict clause.OnConflict) {
	stmt := p.db.Statement
	var only clause.Expression = clause.Expr{SQL: "1=0"}
	if len(p.there) > 0 {
		keys := make([][]any, len(p.there))
		for i, row := range p.there {
			keys[i] = p.storedKey(row)
		}
		only = guard.KeyIn(p.model.Schema, keys)
	}
	conflict.Where.Exprs = guard.OnlyTheseAnd(only, conflict.Where.Exprs)
	c := stmt.Clauses["ON CONFLICT"]
	c.Expression = conflict
	stmt.Clauses["ON CONFLICT"] = c
}

// mustBeFound returns the error of an upsert that met a row which did not exist when it looked.
func (p *part) mustBeFound(written []reflect.Value) error {
	if len(p.absent) == 0 || p.db.RowsAffected >= int64(p.structs()) {
		return nil
	}
	var names []string
	for _, row := range written {
		if !p.seen.InStructs() {
			names = append(names, statement.KeyName(p.storedKey(row)))
		}
	}
	there, err := p.read(true, false, guard.KeyIn(p.model.Schema, p.absent))
	if err != nil {
		return err
	}
	for _, row := range there {
		if key := p.storedKey(row); !slices.Contains(names, statement.KeyName(key)) {
			e := &fault.Stale{Table: p.model.Schema.Table, Op: guard.OpUpsert.String(), PrimaryKey: keyMap(p.model.Schema, key), Keys: p.model.Schema.PrimaryFieldDBNames}
			return e.Err()
		}
	}
	return nil
}

// explainFailure turns the server's error into the same error, if the upsert met such a row.
func (p *part) explainFailure() {
	failed := p.db.Error
	if !dialect.IsFailure(failed) {
		return
	}
	p.db.Error = nil
	err := p.mustBeFound(nil)
	if err == nil {
		err = fmt.Errorf("gormlock: %s has a root, and the upsert found a row by another unique index than its key: nothing was written: %w", p.model.Schema.Name, failed)
	}
	fault.Add(p.db, err)
}

// ask reads the rows that the statement has written, if it could not return them.
func (p *part) ask() ([]reflect.Value, error) {
	var keys [][]any
	written := p.db.RowsAffected
	if stmt := p.db.Statement; slices.Contains(stmt.BuildClauses, "VALUES") {
		if dialect.Of(p.db).FindsByAnyIndex() && statement.HasUpsert(stmt) { // such an upsert counts a row twice if it updates it
			written = min(written, int64(p.structs()))
		}
		keys = p.keys(stmt.ReflectValue)
		keys = append(keys, p.keysOfMaps()...)
		keys = slices.DeleteFunc(keys, func(key []any) bool { return p.isThere(key) && p.keeps })
		if int64(len(keys)) < written {
			return nil, fmt.Errorf("gormlock: %s has a root, and the maps do not show the keys of the rows that were created: create structs, or give the maps their keys", p.model.Schema.Name)
		}
	} else {
		for _, row := range p.there {
			if !guard.Leaves(stmt, row) {
				keys = append(keys, p.storedKey(row))
			}
		}
	}
	if len(keys) == 0 { // Save found no row, and stored one with another statement
		return nil, nil
	}
	if !guard.FitIn(p.db, keys) {
		return nil, fmt.Errorf("gormlock: %s: %d rows are too many for one statement that moves their roots: write fewer at a time", p.model.Schema.Name, len(keys))
	}
	return p.read(true, false, guard.KeyIn(p.model.Schema, keys))
}

// structs is the number of structs of the statement.
func (p *part) structs() (n int) {
	statement.EachStruct(p.db.Statement.ReflectValue, func(reflect.Value) { n++ })
	return n
}

// keysOfMaps are the keys of the maps that were created: GORM has put into them what the server made.
func (p *part) keysOfMaps() (keys [][]any) {
	for _, values := range statement.MapsIn(p.db.Statement.Dest) {
		key := make([]any, 0, len(p.model.Schema.PrimaryFields))
		for _, field := range p.model.Schema.PrimaryFields {
			if value, is := statement.Named(values, field); is && value != nil && !statement.Computed(value) {
				key = append(key, value)
			}
		}
		if len(key) == len(p.model.Schema.PrimaryFields) {
			keys = append(keys, key)
		}
	}
	return keys
}

// addThere adds the roots that a row had before it was written.
func (p *part) addThere(row reflect.Value) {
	name := statement.KeyName(p.storedKey(row))
	for _, there := range p.there {
		if statement.KeyName(p.storedKey(there)) == name {
			p.addOf(there)
		}
	}
}

func (p *part) isThere(key []any) bool {
	return key != nil && slices.ContainsFunc(p.there, func(row reflect.Value) bool {
		return statement.KeyName(p.storedKey(row)) == statement.KeyName(key)
	})
}
