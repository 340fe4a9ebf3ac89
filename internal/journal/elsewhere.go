package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/statement"
)

// pools are two pools on which a name was found to mean the same table.
type pools struct {
	one, other *sql.DB
	table      string
}

// RefuseElsewhere returns an error if dbresolver keeps the table in another database than that of pool, on which the call works. A transaction
// stays on the database where it was begun, whatever dbresolver says.
func RefuseElsewhere(db *gorm.DB, call, table string, pool gorm.ConnPool) error {
	resolve := db.Callback().Update().Get(resolver)
	if resolve == nil || db.DryRun {
		return nil
	}
	write := OnSource(db, table)
	write.Statement.ConnPool = db.ConnPool
	resolve(write)
	picked, own := DatabaseUnder(write.Statement.ConnPool), Database(&gorm.Statement{DB: db, ConnPool: pool})
	if picked == nil || picked == own || picked == DatabaseUnder(db.ConnPool) {
		return nil
	}
	known, pair := &install.Of(db).SameTables, pools{own, picked, table}
	if _, same := known.Load(pair); same && own != nil {
		return nil
	}
	quoted := write.Statement.Quote(table)
	here, err := placeOf(db.Statement.Context, statement.Unprepared(pool), own, quoted)
	there, failed := placeOf(db.Statement.Context, nil, picked, quoted)
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("gormlock: %s: look in which database dbresolver keeps %s: %w", call, table, err)
	}
	if here != there {
		return fmt.Errorf("%w: %s: dbresolver keeps the table %s in another database than this one: open a *gorm.DB on that database, "+
			"or begin a transaction there, with db.Clauses(dbresolver.Use(…), dbresolver.Write)", fault.ErrOption, call, table)
	}
	known.Store(pair, nil)
	return nil
}

// placeOf is a text that identifies the server, its database, and the table that a quoted name stands for. If there is no such table, the schema
// where it would be made stands for it. In a transaction the question runs on tx, because the pool may have no other connection.
func placeOf(ctx context.Context, tx gorm.ConnPool, database *sql.DB, table string) (place string, err error) {
	const ask = `SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), (SELECT oid FROM pg_database WHERE datname = current_database()),
		COALESCE(to_regclass($1)::oid::text, (parse_ident($1))[cardinality(parse_ident($1)) - 1], current_schema()))`
	var asked interface {
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	} = database
	if _, is := tx.(gorm.TxCommitter); is || database == nil {
		asked = tx
	}
	err = asked.QueryRowContext(ctx, ask, table).Scan(&place)
	return place, err
}
