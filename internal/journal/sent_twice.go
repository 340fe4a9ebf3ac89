package journal

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/sqltx"
)

// MaySendTwice reports whether database/sql may send a query of db again if the answer is lost. It does so outside of transactions, unless the
// query runs on a single connection: db.Connection.
func MaySendTwice(db *gorm.DB) (may bool) {
	pool := DatabaseUnder(db.Statement.ConnPool)
	if pool == nil {
		return false
	}
	known := &install.Of(db).SentTwice
	if may, is := known.Load(pool); is {
		return may.(bool)
	}
	conn, err := pool.Conn(db.Statement.Context)
	if err != nil {
		return false // the query itself will report the error
	}
	defer func() { _ = conn.Close() }()
	if conn.Raw(func(driver any) error { may = sqltx.SpeaksSimply(driver); return nil }) == nil {
		known.Store(pool, may)
	}
	return may
}
