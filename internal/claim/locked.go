package claim

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// On MariaDB and MySQL an UPDATE returns no rows. There a claim is three statements in one transaction. If none is open, the claim
// begins one. The first statement reads and locks the free rows, and skips those that others have locked. The second updates them by
// their keys, and the third reads them again.

// inTransaction claims in a new transaction, on the database where an update of the rows would run: where an UPDATE returns no rows, and where a
// single statement might be sent twice.
func (c *claim) inTransaction(db *gorm.DB, rows any) error {
	var claimed error
	err := statement.Nested(journal.ForWrite(statement.Beside(db), rows), func(tx *gorm.DB) error {
		claimed = Into(tx, rows, c.limit, c.assign, c.scopes)
		return claimed
	})
	if err != nil && claimed == nil { // the commit failed: nothing is claimed
		slice := reflect.ValueOf(rows).Elem()
		slice.SetLen(0)
	}
	return err
}

// writeLocking writes the query that locks the free rows.
func (c *claim) writeLocking(stmt *gorm.Statement) *guard.Write {
	statement.Write(stmt, "SELECT ", stmt.Quote(stmt.Table), ".*,NULL AS gormlock_place ")
	start := stmt.SQL.Len()
	stmt.Build("FROM", "WHERE", "ORDER BY")
	c.mustReach(stmt, start)
	statement.EndComment(stmt)
	statement.Write(stmt, " LIMIT ", strconv.Itoa(c.limit))
	if given, _ := stmt.Clauses["LIMIT"].Expression.(clause.Limit); given.Offset > 0 {
		statement.Write(stmt, " OFFSET ", strconv.Itoa(given.Offset))
	}
	statement.Write(stmt, " FOR ")
	c.text.lock.Build(stmt)
	c.leave(stmt)
	return guard.NewClaim(c.model, c.guard)
}

// take updates the locked rows, and reads them again, each into its place.
func (c *claim) take(query *gorm.DB) error {
	slice := query.Statement.ReflectValue
	if slice.Len() == 0 {
		return query.Error
	}
	keys := make([][]any, slice.Len())
	for i := range keys {
		row := reflect.Indirect(slice.Index(i))
		keys[i], _ = statement.KeyOf(query.Statement, c.model.Schema, row)
		if err := c.write.RefusedByRow(query.Statement, row, keys[i]); err != nil {
			slice.SetLen(0)
			return err
		}
	}
	if err := c.update(query, keys); err != nil {
		slice.SetLen(0)
		return err
	}
	if err := c.readAgain(query, keys); err != nil {
		slice.SetLen(0)
		journal.Doom(query, err)
		return err
	}
	return nil
}

// beside is another statement on the table of the claim.
func (c *claim) beside(query *gorm.DB) *gorm.Statement {
	stmt := query.Session(&gorm.Session{NewDB: true, DryRun: true}).Model(reflect.New(c.model.Schema.ModelType).Interface()).Statement
	stmt.Schema = c.model.Schema
	statement.SameTable(stmt, query.Statement)
	return stmt
}

// byKey writes the condition that selects the claimed rows by their keys.
func (c *claim) byKey(stmt *gorm.Statement, keys [][]any) {
	column, values := schema.ToQueryValues(stmt.Table, c.model.Schema.PrimaryFieldDBNames, keys)
	statement.Write(stmt, " WHERE ")
	clause.IN{Column: column, Values: values}.Build(stmt)
}

func (c *claim) update(query *gorm.DB, keys [][]any) error {
	stmt := c.beside(query)
	statement.Write(stmt, "UPDATE ")
	stmt.WriteQuoted(statement.OwnTable)
	_ = stmt.WriteByte(' ')
	c.write.WriteSet(stmt, c.set)
	c.byKey(stmt, keys)
	if stmt.Error != nil {
		return stmt.Error
	}
	result, err := query.Statement.ConnPool.ExecContext(stmt.Context, stmt.SQL.String(), stmt.Vars...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || int(n) > len(keys) {
		return errors.Join(err, c.refused(query.Statement, fmt.Errorf("%w: %d rows were changed, for a limit of %d", errKeyTwice, n, c.limit)))
	}
	return nil
}

func (c *claim) readAgain(query *gorm.DB, keys [][]any) error {
	stmt := c.beside(query)
	statement.Write(stmt, "SELECT *,NULL AS gormlock_place FROM ")
	stmt.WriteQuoted(statement.OwnTable)
	c.byKey(stmt, keys)
	statement.Write(stmt, dialect.Of(query).Current()) // reads current rows: the snapshot may be older than a row that the update left unchanged
	rows, err := query.Statement.ConnPool.QueryContext(stmt.Context, stmt.SQL.String(), stmt.Vars...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	now, err := c.rowsByKey(query, rows)
	if err != nil {
		return err
	}
	slice := query.Statement.ReflectValue
	if len(now) != len(keys) {
		return c.refused(query.Statement, fmt.Errorf("%w, or the claim changes the key: %d rows of %d were found again", errKeyTwice, len(now), len(keys)))
	}
	for i, key := range keys {
		row, there := now[statement.KeyName(key)]
		if !there {
			return c.refused(query.Statement, fmt.Errorf("nothing was claimed: a trigger has changed the key of a row"))
		}
		reflect.Indirect(slice.Index(i)).Set(row)
	}
	return nil
}

// rowsByKey reads rows into a map by the texts of their keys.
func (c *claim) rowsByKey(query *gorm.DB, rows *sql.Rows) (map[string]reflect.Value, error) {
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var none place
	scan := newRowScan(query.Statement, c.model, columns[:len(columns)-1], &none)
	now := map[string]reflect.Value{}
	for rows.Next() {
		row := reflect.New(c.model.Schema.ModelType).Elem()
		if err := scan.into(row, rows); err != nil {
			return nil, err
		}
		key, _ := statement.KeyOf(query.Statement, c.model.Schema, row)
		now[statement.KeyName(key)] = row
	}
	return now, rows.Err()
}
