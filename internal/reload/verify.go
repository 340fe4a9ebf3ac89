package reload

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/rowlock"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

// Verify checks that a row is at the version of its struct, and locks it.
func Verify(db *gorm.DB, value any) error {
	m, row, err := versionedStruct(db, value, "VerifyVersion")
	if err != nil {
		return err
	}
	journal.AtWork(db)
	defer journal.Leave(db)
	err = verifyVersion(statement.Beside(db).Session(&gorm.Session{}), m, row, value)
	whereabouts.KeepTriedIn(db.Statement, m, value)
	install.Of(db).TellRefused(db.Statement.Context, err)
	journal.NoteRefusal(db, err)
	return err
}

func verifyVersion(db *gorm.DB, m *model.Model, row reflect.Value, value any) error {
	if statement.Transaction(db.Statement) == nil {
		return fmt.Errorf("gormlock: VerifyVersion of %s: %w", m.Schema.Table, fault.Because(fault.ErrNoTransaction))
	}
	intent := asked.Of(db.Statement)
	if intent != nil && (!intent.Expects || intent.Ignore || intent.Unchanged != nil) {
		return fmt.Errorf("gormlock: VerifyVersion: %s: it takes no clause about versions but ExpectVersion and IfMatch", m.Schema.Name)
	}
	tx := db.Session(&gorm.Session{NewDB: true}).Model(value)
	stmt := tx.Statement
	if err := stmt.Parse(value); err != nil {
		return err
	}
	if db.Statement.Table != "" {
		statement.SameTable(stmt, db.Statement)
	}
	stmt.Unscoped = db.Statement.Unscoped
	key, _ := statement.KeyOf(db.Statement, m.Schema, row)
	if key == nil {
		return fmt.Errorf("gormlock: VerifyVersion: %s has no primary key: %w", m.Schema.Name, gorm.ErrPrimaryKeyRequired)
	}
	check, err := guard.NewCheck(stmt, m, row, key, intent)
	if err != nil {
		return err
	}
	if err := check.Missing(stmt); err != nil {
		return err
	}
	found, err := shareLock(db, m.Schema, check)
	switch {
	case sqlstate.Of(err) == sqlstate.SerializationFailure:
		return check.Stale(stmt, err)
	case err != nil:
		return err
	}
	return check.Why(tx, found)
}

// shareLock reads the row under a lock, with everything that the call carries: scopes, locks, conditions. The result is not
// valid if the row is gone, or the conditions exclude it.
func shareLock(db *gorm.DB, s *schema.Schema, check guard.Check) (reflect.Value, error) {
	rows := reflect.New(reflect.SliceOf(s.ModelType))
	query := db.Session(&gorm.Session{SkipHooks: true}).Model(rows.Interface()).Select(check.Columns())
	mark.Heed(query.Statement) // Verify itself handles what they ask
	delete(query.Statement.Clauses, asked.ClauseName)
	query = query.Scopes(mark.Narrow(check.IsKey()), statement.LastScope(func(db *gorm.DB) { keepWritersOut(db, s.Table) })).Find(rows.Interface())
	if query.Error != nil || rows.Elem().Len() == 0 {
		return reflect.Value{}, query.Error
	}
	return rows.Elem().Index(0), nil
}

// keepWritersOut gives a query the lock FOR SHARE, unless the call or one of its scopes has a lock that is at least as strong.
func keepWritersOut(db *gorm.DB, table string) {
	stmt := db.Statement
	if stmt.Clauses["FOR"].Expression == nil {
		if dialect.Of(db).LocksRows() { // elsewhere the transaction keeps writers out
			rowlock.Lock{Strength: rowlock.ForShare}.PutLast(stmt)
		}
		return
	}
	own := &gorm.Statement{DB: db} // the scopes run before GORM gives the query the table of its model
	if err := own.Parse(stmt.Model); err != nil {
		fault.Add(db, err)
		return
	}
	if stmt.Table != "" {
		statement.SameTable(own, stmt)
	}
	stmt.Clauses[rowlock.MustLock] = clause.Clause{}
	if err := refuseWeakLock(stmt, statement.OwnName(own)); err != nil {
		fault.Add(db, fmt.Errorf("gormlock: VerifyVersion of %s: %w", table, fault.Because(err)))
	}
}

// refuseWeakLock refuses a row lock that does not keep rows of the table from being changed. table is its name in the query.
func refuseWeakLock(stmt *gorm.Statement, table string) error {
	var strength, options string
	var of []string
	switch l := stmt.Clauses["FOR"].Expression.(type) {
	case rowlock.Lock:
		if l.Err != nil {
			return l.Err
		}
		strength, of = l.Strength.SQL(), l.Of
		if l.Skip {
			options = "SKIP LOCKED"
		}
	case clause.Locking:
		strength, options = l.Strength, l.Options
		if l.Table.Name != "" && l.Table.Name != clause.CurrentTable {
			of = []string{l.Table.Name}
		}
	default:
		return fmt.Errorf("%w: unknown row lock %T: use RowLock or clause.Locking", fault.ErrOption, l)
	}
	if strings.EqualFold(strength, "KEY SHARE") || strings.EqualFold(options, "SKIP LOCKED") || len(of) > 0 && !slices.Contains(of, table) {
		return fmt.Errorf("%w: its row lock would let others change the row: use FOR SHARE or stronger, without Skip, and Of with this table", fault.ErrOption)
	}
	return nil
}
