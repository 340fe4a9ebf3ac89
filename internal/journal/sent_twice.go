package journal

import (
	"database/sql"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/statement"
)

// SendOnce runs send, which executes one statement. It runs it in a transaction if the statement might be sent twice outside of one.
func SendOnce(db *gorm.DB, send func(db *gorm.DB) error) error {
	if db.DryRun || statement.Transaction(db.Statement) != nil || !MaySendTwice(db) {
		return send(db)
	}
	return statement.Nested(db, send)
}

// MaySendTwice reports whether a statement of db that is outside of a transaction may be sent twice: see sqltx.ErrUnheard. It may on a pool that
// is not ours, such as one under PlainTransactions. Where nothing can be begun, nothing can be done about it.
func MaySendTwice(db *gorm.DB) bool {
	pool := statement.Unprepared(db.Statement.ConnPool)
	if prepared, is := pool.(*gorm.PreparedStmtDB); is {
		pool = prepared.ConnPool
	}
	switch pool.(type) {
	case *sql.Conn, interface{ SendsOnce() }:
		return false
	case gorm.TxBeginner, gorm.ConnPoolBeginner:
		plain, err := db.DB()
		if err != nil {
			return true
		}
		may, _ := PoolOver(db, plain).transactions.SendsTwice(db.Statement.Context)
		return may
	}
	return false
}
