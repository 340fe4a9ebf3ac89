package rowlock

import (
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// MustLock is the name of a note on a statement: GORM's own locking clause must lock the rows of its table.
const MustLock = "gormlock:must_lock"

// mustReach adds a check whether the lock reaches the rows. It runs when GORM has written the FROM of the query.
func (l Lock) mustReach(stmt *gorm.Statement) {
	from := stmt.Clauses["FROM"]
	given := from.Builder
	from.Builder = func(from clause.Clause, builder clause.Builder) {
		from.Builder = given
		stmt.Clauses["FROM"] = from // the statement may be used again
		from.Build(builder)
		err := l.Reach(stmt, stmt.SQL.String())
		switch {
		case err == nil:
		case stmt.DryRun:
			statement.FailSubQuery(stmt, err)
		default:
			fault.Add(stmt.DB, err)
		}
	}
	stmt.Clauses["FROM"] = from
}

// mustReachGiven does the same for a statement with MustLock.
func mustReachGiven(db *gorm.DB) {
	stmt := db.Statement
	if _, must := stmt.Clauses[MustLock]; !must || db.Error != nil || db.DryRun || !dialect.Of(db).LocksRows() {
		return
	}
	l := Lock{Strength: ForShare}
	lock := stmt.Clauses["FOR"]
	given, ok := lock.Expression.(clause.Locking)
	if ok && given.Table.Name != "" {
		l.Of = []string{given.Table.Name}
		if given.Table.Name == clause.CurrentTable {
			l.Of[0] = statement.OwnName(stmt)
		}
	}
	if lock.Builder == nil {
		lock.Builder = behindComment
		stmt.Clauses["FOR"] = lock
	}
	l.mustReach(stmt)
	if ok {
		mustBeSent(stmt, "FOR "+given.Strength, "LOCK IN SHARE MODE") // some drivers write SHARE so
	}
}

// Reach returns an error if the query reads rows that the lock would not lock, although the server reports no error. text is the
// text of the query, at least to the end of its FROM.
func (l Lock) Reach(stmt *gorm.Statement, text string) error {
	if err := l.reach(stmt, text); err != nil {
		return fmt.Errorf("gormlock: %s: %w", statement.TableName(stmt), err)
	}
	return nil
}

func (l Lock) reach(stmt *gorm.Statement, text string) error {
	if l.isPlain(stmt, text) {
		return l.mustBeLockable(stmt, stmt.Quote(clause.Table{Name: stmt.Table}))
	}
	speaks := dialect.Of(stmt.DB)
	asked := sqltext.Asked{Strength: int(l.Strength), Of: l.tables(stmt), Descends: !speaks.IsMySQL()}
	if stmt.Schema != nil {
		asked.Model = statement.NameInStatement(stmt.Schema.Table)
	}
	reach := sqltext.ReachOf(text, asked)
	switch {
	case reach.Unread:
		return errors.New("no row lock is known to reach its rows, because the text of its FROM is not understood: lock them with a query of their table")
	case reach.With != "":
		return unreached("%s is a WITH query, which the lock of the query around it passes by: write %v into it too, or read its table in FROM", reach.With, l.Strength)
	case reach.SubQuery != "":
		return unreached("%s is a sub-query in FROM, which the lock of the query around it passes by on %s: give it the row lock too", reach.SubQuery, speaks)
	case reach.Nothing:
		return unreached("its FROM has no table, only what computes rows (a function, VALUES): lock the rows of the tables behind it")
	}
	for _, relation := range reach.Relations {
		if err := l.mustBeLockable(stmt, relation); err != nil {
			return err
		}
	}
	if err := mustComputeRows(stmt, AskTableRows, reach.Functions); err != nil {
		return err
	}
	return mustComputeRows(stmt, AskReads, reach.Alone)
}

func unreached(why string, args ...any) error {
	return fmt.Errorf("no row lock reaches its rows: "+why, args...)
}

// isPlain reports whether the query locks rows of its model's table only. Most do.
func (l Lock) isPlain(stmt *gorm.Statement, text string) bool {
	from, ok := stmt.Clauses["FROM"].Expression.(clause.From)
	return stmt.TableExpr == nil && stmt.Table != "" && ok && len(from.Tables) == 0 && strings.HasPrefix(text, "SELECT ") &&
		(len(l.Of) == 0 || len(l.Of) == 1 && l.Of[0] == stmt.Table)
}

// tables are the names of the tables in the FOR clause; none: it locks rows of all tables.
func (l Lock) tables(stmt *gorm.Statement) []string {
	if len(l.Of) == 0 && statement.Joined(stmt) && stmt.Table != "" {
		return []string{statement.OwnName(stmt)}
	}
	return l.Of
}
