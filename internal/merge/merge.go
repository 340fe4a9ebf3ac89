package merge

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/absent"
	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/attempt"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/reload"
	"github.com/gormlock/gormlock/internal/rowlock"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

const call = "SaveMerged"

// save is one call of SaveMerged.
type save struct {
	model      *model.Model
	mine, base reflect.Value // both are structs of the model
	key        []any         // of their row
	columns    []*schema.Field
	inputs     bool // mine changed fields from which hooks may compute columns
}

// Save writes what mine changed of base on the row as it is now.
func Save(tx *gorm.DB, mine, base any) error {
	if err := install.Usable(tx); err != nil {
		return err
	}
	tx = statement.Beside(tx) // in a hook it must not use the statement whose hook it is
	s, err := newSave(tx, mine, base)
	switch {
	case err != nil:
		return err
	case statement.Transaction(tx.Statement) == nil && !tx.DryRun:
		return (&attempt.Call{}).Run(journal.ForWrite(tx, mine), s.run)
	}
	return s.run(tx)
}

// newSave refuses what cannot be merged, before anything is executed.
func newSave(tx *gorm.DB, mine, base any) (*save, error) {
	s := &save{mine: reflect.ValueOf(mine), base: reflect.ValueOf(base)}
	for _, one := range []reflect.Value{s.mine, s.base} {
		if one.Kind() != reflect.Pointer || one.IsNil() || one.Elem().Kind() != reflect.Struct {
			return nil, fmt.Errorf("gormlock: %s takes two pointers to structs, these are %s and %s", call, absent.Type(mine), absent.Type(base))
		}
	}
	switch {
	case s.mine.Type() != s.base.Type():
		return nil, fmt.Errorf("gormlock: %s: mine and base must have the same type, these are %T and %T", call, mine, base)
	case s.mine.Pointer() == s.base.Pointer():
		return nil, fmt.Errorf("gormlock: %s: mine and base are the same struct, which shows no change: keep a copy of what was read", call)
	}
	s.mine, s.base = s.mine.Elem(), s.base.Elem()
	stmt := &gorm.Statement{DB: tx, Context: tx.Statement.Context}
	if err := stmt.Parse(mine); err != nil {
		return nil, err
	}
	s.model = model.OfSchema(tx, stmt.Schema)
	if s.model.Err != nil {
		return nil, s.model.Err
	}
	s.recover()
	if err := s.findRow(stmt); err != nil {
		return nil, err
	}
	if err := s.fits(tx.Statement); err != nil {
		return nil, err
	}
	s.findColumns()
	s.inputs = s.changesInputs(tx.Statement)
	return s, s.refuseUnwritable(stmt)
}

// recover restores mine and base if ctx has ended the transaction that wrote them. A copy with the version that mine had until then belongs to that
// transaction too, so it counts as not read.
func (s *save) recover() {
	v := s.model.Column
	if v == nil || s.mine.Type() != s.model.Schema.ModelType {
		return
	}
	had := v.Read(s.mine)
	memory.Recover(s.model, s.mine)
	memory.Recover(s.model, s.base)
	if !v.Read(s.mine).Equal(had) && v.Read(s.base).Equal(had) {
		v.Write(s.base, v.Unread())
	}
}

// findRow finds the key of the row of both structs.
func (s *save) findRow(stmt *gorm.Statement) error {
	name := s.model.Schema.Name
	key, _ := statement.KeyOf(stmt, s.model.Schema, s.mine)
	was, _ := statement.KeyOf(stmt, s.model.Schema, s.base)
	switch {
	case key == nil || was == nil:
		return fmt.Errorf("gormlock: %s: %s has no primary key: %w", call, name, gorm.ErrPrimaryKeyRequired)
	case statement.KeyName(key) != statement.KeyName(was):
		return fmt.Errorf("gormlock: %s: %s: mine has the key %v and base %v: they must be of the same row", call, name, key, was)
	}
	if v := s.model.Column; v != nil && !v.Loaded(v.Read(s.base)) {
		return fmt.Errorf("%w: %s: %s: base was not read from its row: its %s is unset", fault.ErrVersionMissing, call, name, v.Field.Name)
	}
	s.key = was
	return nil
}

// fits refuses clauses that do not belong on the statement, and changed associations, which would not be saved.
func (s *save) fits(stmt *gorm.Statement) error {
	intent := asked.Of(stmt)
	switch {
	case intent != nil && (intent.Ignore || intent.Expects || intent.Unchanged != nil):
		return fmt.Errorf("gormlock: %s: %s: it cannot have %s, base says what the row must be: leave it out", call, s.model.Schema.Name, intent)
	case intent != nil && intent.AsksVersion() && install.Of(stmt.DB).WithoutVersions:
		return fmt.Errorf("%w: the plugin was made WithoutVersions, so a statement cannot have %s: take that option out", fault.ErrOption, intent)
	case len(stmt.Selects) > 0:
		return fmt.Errorf("gormlock: %s: %s: it writes what differs from base: leave out Select", call, s.model.Schema.Name)
	}
	for _, name := range stmt.Omits {
		if !statement.NamesAssociation(s.model.Schema, name) {
			return fmt.Errorf("gormlock: %s: %s: it writes what differs from base: leave out Omit of columns", call, s.model.Schema.Name)
		}
	}
	for _, relation := range statement.OwnRelations(s.model.Schema) {
		if slices.Contains(stmt.Omits, relation.Name) || slices.Contains(stmt.Omits, clause.Associations) {
			continue
		}
		mine, base := statement.Place(relation.Field, s.mine), statement.Place(relation.Field, s.base)
		if mine.IsValid() && base.IsValid() && !reflect.DeepEqual(mine.Interface(), base.Interface()) {
			return fmt.Errorf("gormlock: %s: %s.%s differs from base, and associations are not merged: save it by itself, and add Omit(%q) here",
				call, s.model.Schema.Name, relation.Name, relation.Name)
		}
	}
	return nil
}

// findColumns finds the columns to merge: all except the key and those that a write sets by itself.
func (s *save) findColumns() {
	for _, name := range s.model.Schema.DBNames {
		field := s.model.Schema.FieldsByDBName[name]
		ours := s.model.Column != nil && s.model.Column.Field == field || s.model.Fence != nil && s.model.Fence.Field == field
		if !field.PrimaryKey && !ours && field.AutoUpdateTime == 0 {
			s.columns = append(s.columns, field)
		}
	}
}

// run locks the row, reads it, and writes the changes of mine.
func (s *save) run(tx *gorm.DB) error {
	given := reflect.New(s.mine.Type()).Elem()
	given.Set(s.mine)
	done := false
	journal.AtWork(tx)
	defer journal.Leave(tx) // what the server has undone is undone in memory after mine was restored
	defer func() {
		if !done {
			s.mine.Set(given)
			whereabouts.KeepTriedIn(tx.Statement, s.model, s.mine.Addr().Interface())
		}
	}()
	theirs, read, err := s.lockRow(tx)
	if err != nil || read.DryRun {
		return err
	}
	mine, err := s.decide(read, theirs)
	if err != nil {
		return s.refuse(tx, err)
	}
	rest, err := s.mergeRest(read, theirs)
	if err != nil {
		return s.refuse(tx, err)
	}
	before := s.remember(tx)
	before.rest = rest
	before.takeRest()
	s.adopt(read.Statement, theirs, mine)
	before.empty()
	before.memory.Leave()
	if len(mine) > 0 || s.inputs {
		err = s.write(tx, theirs, mine)
		before.empty()
	}
	before.dropped = err != nil
	done = err == nil
	return err
}

// lockRow locks the row, and reads it into a new struct.
func (s *save) lockRow(tx *gorm.DB) (reflect.Value, *gorm.DB, error) {
	theirs := reflect.New(s.mine.Type())
	for _, field := range s.model.Schema.PrimaryFields {
		if place := statement.Place(field, s.base); place.IsValid() {
			field.ReflectValueOf(tx.Statement.Context, theirs.Elem()).Set(place)
		}
	}
	stays := func(field *schema.Field) {
		if from := statement.Place(field, s.base); from.IsValid() {
			field.ReflectValueOf(tx.Statement.Context, theirs.Elem()).Set(memory.Own(from))
		}
	}
	s.eachOther(tx, stays) // fields that AfterFind does not set
	for _, field := range s.columns {
		if statement.IsComputed(field) { // another query may have filled it
			stays(field)
		}
	}
	var lock rowlock.Lock // a database without row locks keeps writers out by the transaction
	if dialect.Of(tx).LocksRows() {
		lock = rowlock.Lock{Strength: rowlock.ForNoKeyUpdate}
	}
	read, err := reload.Into(call, tx, theirs, lock)
	look := s.tableOf(tx)
	switch {
	case err == nil:
		return theirs.Elem(), read, nil
	case errors.Is(err, gorm.ErrRecordNotFound):
		err = s.refuse(tx, guard.Absent(look, s.model, s.base, s.key))
	case sqlstate.Of(err) == sqlstate.SerializationFailure:
		err = s.refuse(tx, guard.Changed(look, s.model, s.base, s.key, err))
	}
	return theirs.Elem(), nil, err
}

// tableOf returns a db for the table that tx names.
func (s *save) tableOf(tx *gorm.DB) *gorm.DB {
	look := tx.Session(&gorm.Session{NewDB: true}).Model(s.base.Addr().Interface())
	_ = look.Statement.Parse(s.base.Addr().Interface()) // it was parsed before
	if tx.Statement.Table != "" {
		statement.SameTable(look.Statement, tx.Statement)
	}
	look.Statement.Unscoped = tx.Statement.Unscoped
	return look
}

// write saves mine. It differs from the row only in the columns to write.
func (s *save) write(tx *gorm.DB, theirs reflect.Value, mine map[string]bool) error {
	had, _ := journal.Count(tx.Statement, true)
	before := func(stmt *gorm.Statement) error { return s.refuse(tx, s.madeOver(stmt, theirs, mine)) }
	written := s.mine.Addr().Interface()
	saved := statement.Beside(tx).Model(written).Clauses(guard.Merged(asked.Merged{Mine: written, Row: theirs, Writes: mine, Before: before})).
		Omit(clause.Associations).Select("*").Updates(written)
	err := saved.Error
	if err == nil && saved.RowsAffected == 0 {
		err = fmt.Errorf("gormlock: %s: the row was not written, though it was locked: a trigger or a row-level security policy keeps it as it is", s.name(saved.Statement))
	}
	if stored, _ := had.End(saved); err != nil && stored {
		journal.Doom(tx, err) // nothing of the transaction may be stored
	}
	return err
}
