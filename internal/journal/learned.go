package journal

import (
	"database/sql"
	"reflect"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// The server's answer about a name holds for one database and one search_path, and for a minute. A transaction with its own search_path
// asks again, once for each name. So does every transaction on a database where connections may have different search_paths.

// Known is the server's earlier answer about a name, if it holds for this statement.
func Known(stmt *gorm.Statement, asks, name string) (value any, known bool) {
	l := lessonOf(stmt, asks, name)
	if l.own == nil {
		if !l.shared {
			return nil, false
		}
		return install.Of(stmt.DB).Learned.Answer(l.question)
	}
	l.own.Mu.Lock()
	defer l.own.Mu.Unlock()
	return l.own.naming.learned[ownQuestion{l.question, l.own.past.path}].Value()
}

// Learn keeps the server's answer for Known.
func Learn(stmt *gorm.Statement, asks, name string, value any) {
	l := lessonOf(stmt, asks, name)
	if l.own == nil {
		if l.shared {
			install.Of(stmt.DB).Learned.Keep(l.question, value)
		}
		return
	}
	l.own.Mu.Lock()
	defer l.own.Mu.Unlock()
	if l.own.naming.learned == nil {
		l.own.naming.learned = map[ownQuestion]install.Answer{}
	}
	l.own.naming.learned[ownQuestion{l.question, l.own.past.path}] = install.NewAnswer(value)
}

// ownQuestion is a question that a transaction has asked, with the path (see journal.Path) at which it did.
type ownQuestion struct {
	install.Question
	path int
}

// lesson says where an answer is kept: in the transaction, or for all statements. If own is nil and shared is false, it is not kept.
type lesson struct {
	question install.Question
	own      *journal
	shared   bool
}

func lessonOf(stmt *gorm.Statement, asks, name string) lesson {
	j := Of(stmt)
	l := lesson{question: install.Question{Database: databaseOf(stmt, j), Asks: asks, Name: name}}
	turned, remade := j.turned()
	moves := (turned || install.Of(stmt.DB).Learned.Roams(l.question.Database)) && !isQualified(name)
	switch {
	case l.question.Database == nil:
	case !moves && !remade:
		l.shared = true
	default:
		l.own = j // nil if no journal hears what else the transaction does
	}
	return l
}

// HasMadeTables reports whether the transaction may have made or renamed tables: then it is not known which rows are in them.
func HasMadeTables(stmt *gorm.Statement) bool {
	_, tables := Of(stmt).turned()
	return tables
}

// turned reports whether the transaction may have a search_path of its own, and whether it may have made or renamed tables.
func (j *journal) turned() (path, tables bool) {
	if j == nil {
		return false, false
	}
	j.Mu.Lock()
	defer j.Mu.Unlock()
	return j.past.path != 0, j.naming.remade > 0
}

// Database is the *sql.DB on which a statement or its transaction runs, nil if it is not known.
func Database(stmt *gorm.Statement) *sql.DB {
	database, _ := databaseOf(stmt, Of(stmt)).(*sql.DB)
	return database
}

// databaseOf identifies the database of a statement, by the *sql.DB if it can be found: each *sql.DB may have a search_path of its own.
func databaseOf(stmt *gorm.Statement, j *journal) any {
	if db := DatabaseUnder(stmt.ConnPool); db != nil {
		return db
	}
	if j != nil && j.database != nil {
		return j.database
	}
	switch pool := statement.Unprepared(stmt.ConnPool).(type) {
	case *sql.Tx, *sql.Conn:
		if db := behind(pool); db != nil {
			return db
		}
	}
	if db := DatabaseUnder(stmt.DB.ConnPool); db != nil {
		return db
	}
	for _, other := range []any{stmt.DB.ConnPool, stmt.Dialector} {
		if other != nil && reflect.TypeOf(other).Comparable() {
			return other
		}
	}
	return nil
}

// behind is the *sql.DB of a *sql.Tx or *sql.Conn, which keep it in a field that no method returns.
func behind(pool any) *sql.DB {
	value := reflect.ValueOf(pool)
	if value.IsNil() {
		return nil
	}
	field := value.Elem().FieldByName("db")
	if field.Kind() != reflect.Pointer || field.Type() != reflect.TypeFor[*sql.DB]() {
		return nil
	}
	return (*sql.DB)(field.UnsafePointer())
}

// isQualified reports whether a name says in which schema its table is.
func isQualified(name string) bool {
	quote := byte(0)
	for i := range len(name) {
		switch c := name[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '`':
			quote = c
		case c == '.':
			return !strings.EqualFold(strings.Trim(name[:i], "\"`"), "pg_temp") // each session has its own
		}
	}
	return false
}

// heed notes how a text changes the meaning of table names, if no journal hears the text or the change outlasts the transaction.
func heed(learned *install.Learned, database any, text sqltext.Text, unheard bool) {
	if text.Remakes {
		learned.Forget()
	}
	if database != nil && (text.Roams || unheard && text.Renames && !text.Remakes) {
		learned.Roam(database)
	}
}

// Relearn forgets what servers have said of names if the server did not find one in a statement, or cannot do with it what it could: another
// session may have put another table or view in the place of a table, or taken a right away.
func Relearn(stmt *gorm.Statement, err error) {
	switch sqlstate.Of(err) {
	case sqlstate.UndefinedColumn, sqlstate.UndefinedTable, sqlstate.InvalidColumnReference, sqlstate.FeatureNotSupported, sqlstate.InsufficientPrivilege:
		if s := install.Of(stmt.DB); s != nil {
			s.Learned.Forget()
		}
	}
}

// hearOutside is called for a text of the program that runs outside of transactions with a journal.
func hearOutside(db *gorm.DB) {
	stmt, s := db.Statement, install.Of(db)
	if _, built := stmt.Clauses["FROM"]; s == nil || built {
		return
	}
	text := sqltext.Read(stmt.SQL.String())
	if text.Renames {
		heed(&s.Learned, databaseOf(stmt, nil), text, DatabaseUnder(stmt.ConnPool) == nil)
	}
	if text.RollsBack(db.Error != nil) {
		endUndone(stmt)
	}
}
