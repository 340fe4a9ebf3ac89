package reading

import (
	"reflect"
	"slices"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// unreached is a query whose rows no rollback reaches, in a transaction that may have written some of them: gormlock does not see how the
// transaction ends, or GORM copies the row to the caller. Its result counts as not read at once.
type unreached struct {
	stmt   *gorm.Statement
	copied bool // gormlock sees the end, and reaches what the copy points to
	wrote  func() bool
}

// loseUnreached makes the result of a query count as not read, if no rollback reaches it. A query that failed may have read some rows.
func loseUnreached(db *gorm.DB, dest reflect.Value) {
	stmt := db.Statement
	_, asked := stmt.Clauses[ownUnread]
	delete(stmt.Clauses, ownUnread)
	if db.RowsAffected == 0 || db.DryRun || !journal.InTransaction(stmt) {
		return
	}
	j := journal.Of(stmt)
	if j == nil && !statement.IsPostgres(db) || j != nil && (j.Written() == 0 || !statement.InCopyingRead()) {
		return // only PostgreSQL says what a transaction has written whose statements gormlock did not see
	}
	u := unreached{stmt: stmt, copied: j != nil, wrote: func() bool { return true }}
	if j == nil {
		u.wrote = onceWritten(stmt)
	}
	if !asked {
		u.loseOwn(dest)
	}
	u.loseForms(dest)
	u.loseAlong(dest)
}

// loseOwn makes the structs of the statement's model unread, if the server could not say which rows the transaction itself wrote.
func (u *unreached) loseOwn(dest reflect.Value) {
	_, locks := u.stmt.Clauses["FOR"] // a lock counts as a write
	if locks && !u.copied || !u.isOfVersioned() || !readsStructs(u.stmt) || !u.wrote() {
		return
	}
	column := model.OfSchema(u.stmt.DB, u.stmt.Schema).Column
	statement.EachStruct(dest, func(row reflect.Value) {
		if row.Type() == u.stmt.Schema.ModelType && row.CanAddr() {
			column.Write(row, column.Unread())
		}
	})
}

// isOfVersioned reports whether the statement's model has a version.
func (u *unreached) isOfVersioned() bool {
	return u.stmt.Schema != nil && model.OfSchema(u.stmt.DB, u.stmt.Schema).Column != nil
}

// loseForms makes versions unread in anything but structs of the statement's model.
func (u *unreached) loseForms(dest reflect.Value) {
	var forms []reflect.Value
	carriers(dest, func(value reflect.Value) {
		switch is := u.stmt.Schema != nil && value.Type() == u.stmt.Schema.ModelType; {
		case is && (isModel(u.stmt.DB, u.stmt.Schema, u.stmt.SQL.String()) || isOwnRow(u.stmt.SQL.String(), u.stmt.Schema, versioned(u.stmt.DB))):
		default:
			forms = append(forms, value)
		}
	})
	if len(forms) == 0 {
		return
	}
	db, text := u.stmt.DB, u.stmt.SQL.String()
	models := carriedBy(db, versioned(db), forms, text)
	if len(models) == 0 || !u.wrote() {
		return
	}
	models = mayBeOf(u.stmt, models, columnsOf(db, models, forms), true)
	for _, form := range forms {
		forgetCarrier(&gorm.DB{Config: db.Config}, models, form, text)
	}
}

// loseAlong makes unread what the query read along with its rows: joined structs, and versions of the rows' own tags. Preloaded structs are read by
// other queries.
func (u *unreached) loseAlong(dest reflect.Value) {
	r := readOf(u.stmt)
	along := versionedWalk{read: r, visit: func(m *model.Model, _ memory.Table, row reflect.Value) { m.Column.Write(row, m.Column.Unread()) }}
	isOne := reflect.Indirect(dest).Kind() == reflect.Struct
	carriers(dest, func(row reflect.Value) {
		if row.Kind() != reflect.Struct || scans(row) || !row.CanAddr() {
			return
		}
		own := r.schemaOf(row)
		if !model.NeedsJournal(r.db, own) {
			return
		}
		if model.IsVersioned(own) && (own != u.stmt.Schema || !isModel(r.db, own, r.text)) && u.wrote() {
			forgetTagged(model.OfSchema(r.db, own), row)
		}
		for _, relation := range slices.Concat(own.Relationships.HasOne, own.Relationships.BelongsTo) {
			place := statement.Place(relation.Field, row)
			switch {
			case !place.IsValid() || place.IsZero() || isOne && !r.mayJoin(relation) || !u.wrote():
			case !u.copied:
				statement.EachStruct(place, along.joined)
			case place.Kind() == reflect.Struct:
				loseAll(u.stmt.DB, relation.FieldSchema, place)
			}
		}
	})
}

// writtenBefore marks a query that takes locks. It says whether the transaction had written or locked a row before it.
type writtenBefore bool

// Build writes nothing.
func (writtenBefore) Build(clause.Builder) {}

const writtenClause = "gormlock:written_before"

// noteWritten asks, before a query with joins and locks, whether the transaction has written, because the locks themselves count as writes.
func noteWritten(stmt *gorm.Statement) {
	if _, locks := stmt.Clauses["FOR"]; locks && len(stmt.Joins) > 0 && journal.Of(stmt) == nil {
		stmt.Clauses[writtenClause] = clause.Clause{Expression: writtenBefore(hasWritten(stmt))}
	}
}

// onceWritten returns a function that reports whether the transaction has written, and asks at most once.
func onceWritten(stmt *gorm.Statement) func() bool {
	noted, is := stmt.Clauses[writtenClause].Expression.(writtenBefore)
	delete(stmt.Clauses, writtenClause)
	return sync.OnceValue(func() bool { return is && bool(noted) || !is && hasWritten(stmt) })
}

// hasWritten reports whether the transaction has written or locked a row. It is for transactions whose statements gormlock does not see.
func hasWritten(stmt *gorm.Statement) bool {
	written := true // even if there is no answer
	if err := stmt.ConnPool.QueryRowContext(stmt.Context, "SELECT pg_current_xact_id_if_assigned() IS NOT NULL").Scan(&written); err != nil {
		return true
	}
	return written
}

// loseAll makes a struct, and the structs joined to it, count as not read.
func loseAll(db *gorm.DB, s *schema.Schema, row reflect.Value) {
	if !row.IsValid() { // an embedded pointer on the way to it is nil
		return
	}
	if m := model.OfSchema(db, s); m.Column != nil {
		m.Column.Write(row, m.Column.Unread())
	}
	for _, relation := range statement.OwnRelations(s) {
		if relation.Field.FieldType.Kind() == reflect.Struct && relation.FieldSchema != s {
			loseAll(db, relation.FieldSchema, statement.Place(relation.Field, row))
		}
	}
}
