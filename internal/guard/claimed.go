package guard

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/reading"
	"github.com/gormlock/gormlock/internal/statement"
)

// NewClaim is the Write of a statement that claims rows of the model.
func NewClaim(m *model.Model, fence *FenceGuard) *Write {
	w := &Write{}
	w.model, w.op, w.version.Version, w.fence = m, OpClaim, m.Column, fence
	w.built.armed = true
	return w
}

// WriteSet writes the SET clause of a claim with the version and the fence, as for an update of rows that are not loaded.
func (w *Write) WriteSet(stmt *gorm.Statement, set clause.Set) {
	if w.version.is() {
		AskZone(stmt, w.model)
		w.version.later = w.version.First(stmt.NowFunc())
	}
	if !w.version.is() && w.fence == nil {
		statement.SQL{Statement: stmt}.Text("SET ")
		set.Build(stmt)
		return
	}
	stmt.Clauses[writeClause] = clause.Clause{Expression: w}
	stmt.Clauses["SET"] = clause.Clause{Name: "SET", Expression: set}
	stmt.Build("SET")
	delete(stmt.Clauses, "SET")
	delete(stmt.Clauses, writeClause)
}

// RememberClaim makes claimed rows count as not read if their transaction is rolled back: the structs have what the claim assigned, and nobody
// knows what the rows had before. A claim of unversioned columns leaves a version that other structs may have too. After an error, rows may be
// claimed that were not returned. unsure means that the commit may have failed.
func (w *Write) RememberClaim(query *gorm.DB, rows reflect.Value, failed error, unsure bool) {
	w.outcome.lost = failed != nil
	v, j := &w.version, journal.Of(query.Statement)
	if j == nil {
		if v.is() && (unsure || journal.InTransaction(query.Statement)) { // gormlock does not see the end of the transaction
			statement.EachStruct(rows, func(row reflect.Value) { v.Write(row, v.Unread()) })
		}
		return
	}
	reading.KeepRowsOf(query, rows, 1) // the claim itself writes
	if !v.is() || rows.Len() == 0 && !w.outcome.lost {
		return
	}
	w.memory.In = memory.WrittenTable(query.Statement, w.model.Schema)
	_, _ = w.memory.Find(w.model, rows.Interface())
	claimed := make([]column.Value, w.memory.Count)
	for i := range claimed {
		row := w.memory.Row(i)
		claimed[i] = v.Read(row)
		v.Write(row, v.Unread())
	}
	w.memory.Keep()
	for i := range claimed {
		v.Write(w.memory.Row(i), claimed[i])
	}
	w.memory.Leave()
	w.memory.Guessed = !w.built.bumps
	j.Keep(w)
}

// RefusedByRow returns the error of a claim if this locked row was written with a later token, or nil. It is for servers whose UPDATE does not
// return that.
func (w *Write) RefusedByRow(stmt *gorm.Statement, row reflect.Value, key []any) error {
	if !w.fence.guards() {
		return nil
	}
	one := &Row{Struct: row, Key: key, name: statement.KeyName(key)}
	err := w.fence.why(&w.judge, stmt, one, row)
	if err != nil {
		install.Of(stmt.DB).TellRefused(stmt.Context, err)
	}
	return err
}
