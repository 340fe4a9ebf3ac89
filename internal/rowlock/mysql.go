package rowlock

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// MariaDB and MySQL have two strengths. They lock the rows of all tables of a query. In MariaDB the clause itself can limit the
// wait. If a lock is not granted, only the statement fails, and the transaction stays as it was.

// keyword returns the beginning of the clause.
func (l Lock) keyword(stmt *gorm.Statement) string {
	if speaks := dialect.Of(stmt.DB); speaks.IsMySQL() && l.shares(stmt) && !l.waitsForShare(speaks) {
		return "LOCK"
	}
	return l.Name()
}

func (l Lock) shares(stmt *gorm.Statement) bool {
	return l.Strength >= ForShare && dialect.Of(stmt.DB).Strength(l.Strength.SQL()) == ForShare.SQL()
}

// waitsForShare reports whether the lock must be written as FOR SHARE: MySQL accepts NOWAIT and SKIP LOCKED of a shared lock only there. MariaDB
// does not know FOR SHARE.
func (l Lock) waitsForShare(speaks dialect.Dialect) bool {
	return (l.Try || l.Skip) && speaks.KnowsForShare()
}

func (l Lock) buildMySQL(stmt *gorm.Statement) {
	switch {
	case !l.shares(stmt):
		statement.Write(stmt, forUpdate.SQL())
	case l.waitsForShare(dialect.Of(stmt.DB)):
		statement.Write(stmt, ForShare.SQL())
	default:
		statement.Write(stmt, "IN SHARE MODE")
	}
	if running, ok := stmt.Clauses[rowWait].Expression.(Lock); ok {
		l.Timeout = running.Timeout // the plugin's DefaultTimeout, if the query has none
	}
	switch {
	case l.Skip:
		statement.Write(stmt, " SKIP LOCKED")
	case l.Try:
		statement.Write(stmt, " NOWAIT")
	case l.Timeout > 0:
		statement.Write(stmt, " WAIT ", strconv.FormatInt(int64((l.Timeout+time.Second-1)/time.Second), 10))
	}
}

// fitsMySQL refuses options that MariaDB or MySQL cannot express.
func (l Lock) fitsMySQL(stmt *gorm.Statement) error {
	speaks := dialect.Of(stmt.DB)
	switch {
	case !speaks.IsMySQL():
		return nil
	case len(l.Of) > 0:
		return fmt.Errorf("%w: %s locks the rows of all tables of a query: leave out Of(%q), or lock in a query of its own", fault.ErrOption, speaks, l.Of)
	case l.Timeout > 0 && !speaks.IsMariaDB():
		return fmt.Errorf("%w: %s bounds no wait for one query: leave out Timeout, take Try, or set innodb_lock_wait_timeout", fault.ErrOption, speaks)
	}
	return nil
}

// askEngine asks the server whether it can lock rows of a table. It can in InnoDB tables only.
func askEngine(stmt *gorm.Statement, relation string) (said answer, err error) {
	var database sql.NullString
	table := strings.Trim(relation, "`")
	if schema, name, has := strings.Cut(relation, "`.`"); has {
		database, table = sql.NullString{String: strings.Trim(schema, "`"), Valid: true}, strings.Trim(name, "`")
	} else if schema, name, has := strings.Cut(relation, "."); has && !strings.HasPrefix(relation, "`") {
		database, table = sql.NullString{String: schema, Valid: true}, name
	}
	rows, err := statement.Unprepared(stmt.ConnPool).QueryContext(stmt.Context,
		"SELECT table_type, COALESCE(engine,'') FROM information_schema.tables WHERE table_schema=COALESCE(?,DATABASE()) AND table_name=?",
		database, strings.ReplaceAll(table, "``", "`"))
	if err != nil {
		return said, err
	}
	defer func() { _ = rows.Close() }()
	if rows.Next() {
		var kind, engine string
		err = rows.Scan(&kind, &engine)
		switch {
		case err != nil:
		case kind != "BASE TABLE":
			said.why = "is a " + strings.ToLower(kind) + ", lock the rows of its table"
		case !strings.EqualFold(engine, "InnoDB"):
			said.why = "has the engine " + engine + ", which locks no rows: ALTER TABLE … ENGINE=InnoDB"
		}
		said.there = err == nil
	}
	return said, errors.Join(err, rows.Err())
}
