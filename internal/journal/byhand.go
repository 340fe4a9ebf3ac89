package journal

import (
	"database/sql"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/sqltx"
	"github.com/gormlock/gormlock/internal/statement"
)

// InTransaction reports whether the statement runs in a transaction, or may do so: on a single connection the program may have sent a
// BEGIN itself, without a *sql.Tx. If the driver is pgx, it knows.
func InTransaction(stmt *gorm.Statement) bool {
	if statement.Transaction(stmt) != nil {
		return true
	}
	conn, one := onOne(stmt)
	return one && sqltx.StatusOf(conn) != sqltx.Idle
}

// BegunByHand reports whether the program is known to have sent BEGIN itself. Another BEGIN would not nest in that transaction, and its
// COMMIT would commit the work of the program.
func BegunByHand(stmt *gorm.Statement) bool {
	conn, one := onOne(stmt)
	if !one {
		return false
	}
	status := sqltx.StatusOf(conn)
	return status == sqltx.Open || status == sqltx.Aborted
}

func onOne(stmt *gorm.Statement) (conn *sql.Conn, one bool) {
	conn, one = stmt.ConnPool.(*sql.Conn)
	return conn, one && conn != nil && !stmt.DryRun
}
