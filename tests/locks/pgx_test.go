package locks_test

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/pgxlock"
)

// everyDoor has the doors of pgx as well, on the connections of GORM's own pool.
var everyDoor = slices.Concat(doors, []door{
	{"pgxlock.Acquire", true, func(tx *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		inner, err := pgtest.PgxTx(tx)
		if err != nil {
			return err
		}
		return pgxlock.Acquire(tx.Statement.Context, inner, []lockkey.Key{key}, opts...)
	}},
	{"pgxlock.Transaction in a transaction", true, func(tx *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		outer, err := pgtest.PgxTx(tx)
		if err != nil {
			return err
		}
		return pgxlock.Transaction(tx.Statement.Context, outer, nothing, pgxlock.Locking(key, opts...))
	}},
	{"pgxlock.Transaction", false, func(db *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		return pgtest.PgxConn(db, func(conn *pgx.Conn) error {
			return pgxlock.Transaction(db.Statement.Context, conn, nothing, pgxlock.Locking(key, opts...))
		})
	}},
	{"pgxlock.Transaction at READ COMMITTED", false, func(db *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		return pgtest.PgxConn(db, func(conn *pgx.Conn) error {
			return pgxlock.Transaction(db.Statement.Context, conn, nothing, pgxlock.Locking(key, opts...), pgxlock.Isolation(pgx.ReadCommitted))
		})
	}},
	{"pgxlock.Transaction at SERIALIZABLE", false, func(db *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		return pgtest.PgxConn(db, func(conn *pgx.Conn) error {
			return pgxlock.Transaction(db.Statement.Context, conn, nothing, pgxlock.Locking(key, opts...), pgxlock.Isolation(pgx.Serializable))
		})
	}},
})

// ofPgx reports whether the door is one of pgx.
func (d door) ofPgx() bool { return strings.HasPrefix(d.name, "pgxlock") }

func nothing(pgx.Tx) error { return nil }
