package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/reading"
	"github.com/gormlock/gormlock/internal/statement"
)

// returning makes a statement return the columns that memory needs. GORM scans rows into structs by position. That is wrong if rows are skipped or
// come in another order. So the rows go to a separate slice, and reach their structs by key.
type returning struct {
	fields  []*schema.Field
	whole   bool            // all columns that are read are among them
	watched []*schema.Field // columns that are returned but not given to the structs: see Observe
	others  []clause.Column // what the caller asks for in addition to columns of the model

	callers
	back       bool // the statement cannot return them, so they are read after it
	byPosition bool // a plain INSERT, which GORM itself scans correctly
	inOrder    bool // the rows of a plain INSERT, in the order of its structs
	bulk       bool // the row of a bulk statement that is read into one struct, whose key is not in the statement
	swapped    bool
	target     reflect.Value
	rows       reflect.Value
}

// callers is the caller's RETURNING while another one replaces it.
type callers struct {
	had       clause.Clause
	hadAny    bool
	installed bool // another one replaces it
}

func (r *returning) wanted() bool { return r != nil && len(r.fields) > 0 }

// install replaces the caller's RETURNING by one that also has its columns.
func (r *returning) install(d *draft, stmt *gorm.Statement) {
	if r.installed {
		return
	}
	r.back = !returns(stmt)
	if d != nil && d.returning == r {
		d.watchVersion(stmt)
	}
	r.had, r.hadAny = stmt.Clauses["RETURNING"]
	if r.hadAny {
		asked, _ := r.had.Expression.(clause.Returning)
		d.wantAsked(stmt, asked.Columns)
	}
	r.installed = true
	if r.back {
		delete(stmt.Clauses, "RETURNING") // GORM's driver would send it
		return
	}
	stmt.Clauses["RETURNING"] = clause.Clause{Name: "RETURNING", Expression: r}
}

// Build writes the columns, and makes GORM scan into the separate slice.
func (r *returning) Build(to clause.Builder) {
	stmt, ok := to.(*gorm.Statement)
	if !ok {
		return
	}
	sql, table := statement.SQL{Statement: stmt}, ""
	if _, joins := stmt.Clauses["FROM"]; joins && slices.Contains(stmt.BuildClauses, "UPDATE") { // other tables may have columns of the same name
		table = clause.CurrentTable
	}
	for _, column := range r.others {
		stmt.WriteQuoted(column)
		sql.Text(",")
	}
	for i, field := range r.columns() {
		if i > 0 {
			sql.Text(",")
		}
		if w := writeOf(stmt); w != nil && w.returning == r && w.upsert != nil && w.upsert.tells != byVersion && field == w.version.Field {
			builder{SQL: sql, draft: &w.draft}.returnTold()
			continue
		}
		sql.Column(table, field.DBName)
	}
	if r.swapped {
		return
	}
	r.swapped, r.target = true, stmt.ReflectValue
	r.rows = reflect.New(reflect.SliceOf(stmt.Schema.ModelType)).Elem()
	stmt.ReflectValue = r.rows
}

// columns are all returned columns.
func (r *returning) columns() []*schema.Field {
	all := slices.Clip(r.fields)
	for _, field := range r.watched {
		if !slices.Contains(all, field) {
			all = append(all, field)
		}
	}
	return all
}

// collect restores the structs of the statement.
func (r *returning) collect(stmt *gorm.Statement) {
	if r == nil {
		return
	}
	if r.swapped {
		r.rows, stmt.ReflectValue = stmt.ReflectValue, r.target
		r.swapped = false
	}
	r.restore(stmt)
}

// restore restores the RETURNING of the statement.
func (r *returning) restore(stmt *gorm.Statement) {
	if r == nil || !r.installed {
		return
	}
	r.installed = false
	if r.hadAny {
		stmt.Clauses["RETURNING"] = r.had
	} else {
		delete(stmt.Clauses, "RETURNING")
	}
}

// has reports whether rows were requested for the structs, and scanned.
func (r *returning) has() bool { return r.wanted() && r.rows.IsValid() }

func (r *returning) len() int {
	if !r.has() {
		return 0
	}
	return r.rows.Len()
}

// all are the rows that were returned for the structs.
func (r *returning) all() []reflect.Value {
	if !r.has() {
		return nil
	}
	return r.seen()
}

// seen are all rows that were returned, for any reason.
func (r *returning) seen() []reflect.Value {
	if r == nil || !r.rows.IsValid() {
		return nil
	}
	rows := make([]reflect.Value, r.rows.Len())
	for i := range rows {
		rows[i] = r.rows.Index(i)
	}
	return rows
}

// first is the row that was returned, or an invalid value.
func (r *returning) first() reflect.Value {
	if r.len() == 0 {
		return reflect.Value{}
	}
	return r.rows.Index(0)
}

// isWhole reports whether this is a whole row.
func (r *returning) isWhole(row reflect.Value) bool { return r != nil && r.whole && row.IsValid() }

// give copies the returned columns into the caller's struct. If others have moved the row to another owner, the struct drops the owner that it
// holds, because the next save would move the row back.
func (r *returning) give(from, to reflect.Value, owners []*schema.Relationship) {
	links := statement.LinksOf(owners, to)
	defer links.Empty(to)
	for _, field := range r.fields {
		statement.Copy(field, from, to)
	}
	if len(r.others) == 0 {
		return
	}
	for _, field := range r.fields[0].Schema.Fields { // GORM has read what the caller asks for in addition, if there is a field of that name
		if place := statement.Place(field, from); place.IsValid() && !place.IsZero() && !slices.Contains(r.fields, field) {
			statement.Copy(field, from, to)
		}
	}
}

// keepReturned notes the rows that an update or a delete without a struct has returned: it wrote them and read them.
func keepReturned(db *gorm.DB) {
	stmt, w := db.Statement, writeOf(db.Statement)
	asked, asks := stmt.Clauses["RETURNING"]
	if _, ours := asked.Expression.(*returning); !asks || ours || db.Error != nil && db.RowsAffected == 0 || db.DryRun || install.Of(db) == nil || w != nil && len(w.rows) > 0 || !journal.InTransaction(stmt) {
		return
	}
	r := reading.Of(stmt, stmt.ReflectValue)
	switch j := journal.Of(stmt); {
	case r == nil:
	case j == nil || w != nil && w.outcome.undone:
		r.Lose() // gormlock does not see how the transaction ends
	default:
		j.Keep(r)
	}
}
