package journal

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/sqltx"
)

// MaySendTwice reports whether database/sql sends a query of db again, outside of a transaction, if its answer is lost. It does not if the query has
// a connection of its own: db.Connection.
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
		return false // the query will say it
	}
	defer func() { _ = conn.Close() }()
	if conn.Raw(func(driver any) error { may = sqltx.SpeaksSimply(driver); return nil }) == nil {
		known.Store(pool, may)
	}
	return may
}
