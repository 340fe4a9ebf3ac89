package whereabouts

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
)

// tried has the structs of a statement that has written none of them.
type tried struct {
	memory *memory.Structs
	noted  *memory.Noted
}

// KeepTried notes where such structs are, if a rollback would undo their versions.
func KeepTried(stmt *gorm.Statement, s *memory.Structs) {
	j, m := journal.Of(stmt), s.Model()
	if j != nil && m != nil && m.Err == nil && m.Column != nil && !stmt.DryRun {
		here := s.Here()
		j.KeepTried(&tried{here, memory.NoteTried(here, j.Began())})
	}
}

// KeepTriedIn does the same for structs of a model that were given to a call.
func KeepTriedIn(stmt *gorm.Statement, m *model.Model, value any) {
	if journal.Of(stmt) != nil {
		given := memory.Structs{In: memory.TableOf(stmt, m.Schema)}
		given.Find(m, value)
		KeepTried(stmt, &given)
	}
}

// Stray implements journal.Straying, as does Loosen.
func (t *tried) Stray(all *journal.Astray) {
	for i := range t.memory.Count {
		memory.StraySeen(all, t.memory.Model(), t.memory.In, t.memory.Row(i))
	}
}

// Loosen lets go of the structs.
func (t *tried) Loosen() { t.memory.Loosen() }

// Undo implements journal.Step, as does Lose.
func (*tried) Undo() {}

// Lose does nothing either.
func (*tried) Lose() {}
