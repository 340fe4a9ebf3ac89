package reading

import (
	"database/sql"
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/sqltx"
)

// keepScanned notes what is read from the rows of a statement, which are open now. Scan puts its destination into the statement after the first
// row, and closes the rows when it has filled the destination. After that the statement may be used for other destinations. step notes what Scan
// has filled.
func (r *Read) keepScanned(db *gorm.DB, step scanner) {
	stmt := db.Statement
	rows, are := stmt.Dest.(*sql.Rows)
	if !are || rows == nil {
		return
	}
	j := journal.Of(stmt)
	if !inScan(db) { // the caller may give the rows to ScanRows of this statement
		r.later = stmt
		j.Keep(step)
		return
	}
	told, err := sqltx.Relay(rows, sqltx.OnRows{Closed: func() { //nolint:rowserrcheck // Scan does
		if r.holdScanned(stmt) && step.scannedInto(reflect.ValueOf(stmt.Dest)) {
			j.Keep(step)
		}
	}})
	if err != nil {
		_ = rows.Close()
		fault.Add(db, err)
		return
	}
	stmt.Dest = told
}

// scanner is a step for what Scan reads.
type scanner interface {
	journal.Step
	// scannedInto notes what Scan has filled. It reports false if there is nothing to note.
	scannedInto(dest reflect.Value) bool
}

// holdScanned holds what the statement's rows were scanned into. If there were no rows, there is no destination.
func (r *Read) holdScanned(stmt *gorm.Statement) (has bool) {
	if _, unscanned := stmt.Dest.(*sql.Rows); unscanned {
		return false
	}
	if r.hold(reflect.ValueOf(stmt.Dest)); r.schema == nil {
		r.schema = stmt.Schema
		if r.schema != nil {
			r.in = r.in.Of(stmt, r.schema)
		}
	}
	return true
}

// scanned holds the struct that ScanRows has filled last. The statement may have had other destinations since, so anything but a struct may belong
// to somebody else. It reports false while there is no struct.
func (r *Read) scanned() bool {
	if r.later == nil {
		return true
	}
	if !r.holdScanned(r.later) {
		return false
	}
	r.others, r.later = nil, nil
	return true
}
