package guard

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

const ownSetting = "gormlock:own_write" // clones of the statement have it too

// enter puts the Write where the statement finds it, and where its absence is noticed if a callback removes it.
func (w *Write) enter() {
	w.of.Clauses[writeClause] = clause.Clause{Expression: w}
	if !w.dry {
		w.of.Settings.Store(ownSetting, w)
	}
}

// refuseRenewed fails a statement if a callback has removed its Write from its clauses: nothing would be compared. sent means that the statement
// was executed.
func refuseRenewed(db *gorm.DB, sent bool) {
	stmt := db.Statement
	if db.Error != nil || writeOf(stmt) != nil {
		return
	}
	if m := model.Of(db); m == nil || m.Column == nil && m.Fence == nil {
		return
	}
	value, _ := stmt.Settings.Load(ownSetting)
	w, _ := value.(*Write)
	if w == nil || w.of != stmt || w.outcome.over {
		return
	}
	if stmt.Clauses == nil {
		stmt.Clauses = map[string]clause.Clause{}
	}
	stmt.Clauses[writeClause] = clause.Clause{Expression: w} // so that the end of the statement finds it
	err := fmt.Errorf("gormlock: %s: a callback has renewed Statement.Clauses, where gormlock keeps what it compares: change the clauses there, and leave the others in", statement.TableName(stmt))
	if sent {
		journal.Doom(db, err)
	}
	w.refuse(db, err)
}
