package merge

import (
	"errors"
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

// step is the change of a struct by the merge, without the write itself. A rollback undoes it.
type step struct {
	memory  memory.Structs
	version *column.Version // nil: the model has none
	row     reflect.Value
	links   statement.Links
	held    []statement.Association
	ways    []pointer
	rest    []other
	dropped bool // the call has failed, and restored the struct itself
}

// empty empties the associations whose keys the row no longer has.
func (b *step) empty() { b.links.Empty(b.row) }

// Held implements whereabouts.Holder.
func (b *step) Held() *memory.Structs { return &b.memory }

// Stray implements journal.Straying. The step is kept before the struct is changed, so only the struct itself is known.
func (b *step) Stray(all *journal.Astray) { memory.StrayRead(all, b.row) }

// Loosen implements journal.Straying.
func (b *step) Loosen() { memory.LoosenRead(b.row) }

// Regroup implements journal.Regrouper.
func (b *step) Regroup(undone []journal.Step, all *journal.Ever, lost bool) {
	whereabouts.Regroup(undone, all, lost)
}

// Undo implements journal.Step, as does Lose.
func (b *step) Undo() {
	if b.dropped || b.memory.IsUsed(0) {
		return
	}
	b.memory.Undo()
	b.putRestBack()
	for _, way := range b.ways {
		way.putBack()
	}
	for _, association := range b.held {
		association.PutBack()
	}
}

func (b *step) Lose() {
	if !b.dropped && !b.memory.IsUsed(0) && b.version != nil {
		b.version.Write(b.row, b.version.Unread())
	}
}

// remember keeps mine as it is, to restore it if the transaction is rolled back.
func (s *save) remember(tx *gorm.DB) *step {
	b := &step{
		version: s.model.Column, row: s.mine, ways: s.embedded(),
		links: statement.LinksOf(statement.OwnRelations(s.model.Schema), s.base), held: statement.AssociationsOf(s.model.Schema, s.mine),
	}
	b.memory.In = memory.WrittenTable(tx.Statement, s.model.Schema)
	b.memory.Find(s.model, s.mine.Addr().Interface())
	b.memory.Keep()
	b.memory.Guessed = true // it takes the row's version, which other structs of the row may have too
	if j := journal.Of(tx.Statement); j != nil {
		j.Keep(b)
	}
	return b
}

// refuse reports a conflict to the observer. In a transaction in which every conflict counts, it prevents the commit.
func (s *save) refuse(tx *gorm.DB, err error) error {
	if !errors.Is(err, fault.ErrStale) {
		return err
	}
	if j := journal.Of(tx.Statement); j != nil && j.IsStrict() {
		j.Doom(err)
	}
	install.Of(tx).TellRefused(tx.Statement.Context, err)
	journal.NoteRefusal(tx, err)
	return err
}

// name returns the row for error texts.
func (s *save) name(stmt *gorm.Statement) string {
	key := map[string]any{}
	for i, field := range s.model.Schema.PrimaryFields {
		key[field.DBName] = s.key[i]
	}
	return fault.Row(statement.TableName(stmt), s.model.Schema.PrimaryFieldDBNames, key)
}
