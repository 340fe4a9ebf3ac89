package whereabouts

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
)

// tried has the structs of a statement that has written none of them.
type tried struct{ memory memory.Structs }

// KeepTried notes where such structs are, if a rollback would take their versions back.
func KeepTried(stmt *gorm.Statement, s *memory.Structs) {
	j, m := journal.Of(stmt), s.Model()
	if j != nil && m != nil && m.Err == nil && m.Column != nil && !stmt.DryRun {
		j.KeepTried(&tried{s.Here()})
	}
}

// KeepTriedIn does so for structs of a model that a call was given.
func KeepTriedIn(stmt *gorm.Statement, m *model.Model, value any) {
	if journal.Of(stmt) != nil {
		given := memory.Structs{In: memory.TableOf(stmt, m.Schema)}
		given.Find(m, value)
		KeepTried(stmt, &given)
	}
}

// Undo implements journal.Step, as does Lose.
func (*tried) Undo() {}

// Lose does nothing either.
func (*tried) Lose() {}

// eachTried visits those that are among steps.
func eachTried(steps []journal.Step, visit func(*tried)) {
	for _, step := range steps {
		if all, is := step.(*journal.Tried); is {
			all.Each(func(step journal.Step) {
				if t, is := step.(*tried); is {
					visit(t)
				}
			})
		}
	}
}
