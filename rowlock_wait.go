package gormlock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// rowWait marks, among the statement's clauses, that the query runs under its row lock, and under a savepoint if a locked
// row is an error.
const rowWait = "gormlock:row_wait"

// The texts around a query that may fail at a lock, each one message. The old lock_timeout is kept by the server, in a
// setting of ours, so that nobody has to ask for it first; a released savepoint keeps what was set under it.
const (
	openTry      = "SAVEPOINT gormlock"
	openTimeout  = "SAVEPOINT gormlock; SELECT set_config('gormlock.lock_timeout', current_setting('lock_timeout'), true), set_config('lock_timeout', '%s', true)"
	closeTry     = "RELEASE SAVEPOINT gormlock"
	closeTimeout = "SELECT set_config('lock_timeout', current_setting('gormlock.lock_timeout'), true); RELEASE SAVEPOINT gormlock"
	undo         = "ROLLBACK TO SAVEPOINT gormlock; RELEASE SAVEPOINT gormlock"
)

// beginRowLock runs before a query.
func beginRowLock(db *gorm.DB) {
	stmt := db.Statement
	l, ok := rowLockOf(stmt)
	if !ok || db.Error != nil {
		return
	}
	if err := l.admit(db); err != nil {
		fail(db, err)
		return
	}
	l.lockPreloaded(stmt)
	l = l.within(pluginOf(db).defaultTimeout)
	l.began = pluginOf(db).began()
	if db.DryRun {
		return
	}
	if l.mayFail() {
		if err := l.send(stmt.Context, stmt, l.openText()); err != nil {
			fail(db, l.verdict(stmt, err))
			return
		}
	}
	stmt.Clauses[rowWait] = clause.Clause{Expression: l}
}

// endRowLock runs after a query, whatever became of it.
func endRowLock(db *gorm.DB) {
	stmt := db.Statement
	l, ran := stmt.Clauses[rowWait].Expression.(RowLockClause)
	if !ran {
		return
	}
	delete(stmt.Clauses, rowWait)
	if l.mayFail() {
		l.close(db)
	}
	if db.Error != nil {
		if verdict := l.verdict(stmt, db.Error); verdict != db.Error { //nolint:errorlint // the same value, not the same kind
			db.Error = nil
			fail(db, verdict)
		}
	}
	l.tell(stmt.Context, pluginOf(db), tableName(stmt), db.RowsAffected, db.Error)
}

// beginRowLockInRow runs before Row, Rows and Scan, where the rows are open when the call returns: nothing can be
// executed behind them.
func beginRowLockInRow(db *gorm.DB) {
	l, ok := rowLockOf(db.Statement)
	if !ok || db.Error != nil {
		return
	}
	if err := l.admit(db); err != nil {
		fail(db, err)
		return
	}
	const cure = "need Find instead of Row, Rows or Scan, whose rows are still open"
	switch {
	case l.mayFail():
		fail(db, fmt.Errorf("gormlock: %s: Try and Timeout of a row lock %s", tableName(db.Statement), cure))
	case l.within(pluginOf(db).defaultTimeout).mayFail():
		fail(db, fmt.Errorf("gormlock: %s: a row lock and the plugin's DefaultTimeout %s", tableName(db.Statement), cure))
	}
}

// refuseRowLock runs before updates, deletes and raw SQL: they lock what they change and have no FOR clause.
func refuseRowLock(db *gorm.DB) {
	if l, ok := rowLockOf(db.Statement); ok && db.Error == nil {
		fail(db, fmt.Errorf("gormlock: %v is for queries: this statement would be executed without it", l.strength))
	}
}

// refuseRowLockInCreate runs before creates. A row that is created belongs to the transaction, so FirstOrCreate with a
// row lock has what it asks for either way; a conflict that is ignored leaves a row that nobody locked.
func refuseRowLockInCreate(db *gorm.DB) {
	if _, ok := db.Statement.Clauses["ON CONFLICT"]; ok {
		refuseRowLock(db)
	}
}

// within bounds a wait that names no bound of its own.
func (l RowLockClause) within(d time.Duration) RowLockClause {
	if !l.try && !l.skip && l.timeout == 0 {
		l.timeout = d
	}
	return l
}

// mayFail reports whether a locked row is an error, which aborts the transaction unless there is a savepoint.
func (l RowLockClause) mayFail() bool { return l.try || l.timeout > 0 }

func (l RowLockClause) openText() string {
	if l.timeout == 0 {
		return openTry
	}
	ms := (l.timeout + time.Millisecond - 1).Milliseconds()
	return strings.Replace(openTimeout, "%s", strconv.FormatInt(ms, 10), 1)
}

// close gives the savepoint up, and takes the transaction back to it if a row was locked. After any other error of the
// server the transaction is aborted, as it would be without the savepoint.
func (l RowLockClause) close(db *gorm.DB) {
	state := sqlState(db.Error)
	if state != "" && state != lockNotAvailable {
		return
	}
	text := closeTry
	switch {
	case state == lockNotAvailable:
		text = undo
	case l.timeout > 0:
		text = closeTimeout
	}
	ctx := db.Statement.Context
	ended := ctx.Err() != nil // while the rows were read: the transaction may go on
	if ended {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		ctx = bounded
	}
	err := l.send(ctx, db.Statement, text)
	if !ended && err != nil && (db.Error == nil || state != "") {
		fail(db, fmt.Errorf("gormlock: %s: the savepoint of the row lock: %w", tableName(db.Statement), err))
	}
}

// closing bounds what is sent when the context of the query has ended.
const closing = 5 * time.Second

// send sends statements without arguments as one message.
func (l RowLockClause) send(ctx context.Context, stmt *gorm.Statement, text string) error {
	_, err := transactionOf(stmt).ExecContext(ctx, text)
	return err
}

// lockPreloaded gives the lock to the queries of Preload, at each step of each path: which steps are queries of their
// own is GORM's affair.
func (l RowLockClause) lockPreloaded(stmt *gorm.Statement) {
	if !l.preloaded || len(stmt.Preloads) == 0 {
		return
	}
	child := l
	child.of, child.skip = nil, false
	preloads := maps.Clone(stmt.Preloads)
	done := map[string]bool{}
	for path := range stmt.Preloads {
		for end := range len(path) + 1 {
			if step := path[:end]; (end == len(path) || path[end] == '.') && !done[step] {
				done[step] = true
				preloads[step] = append(slices.Clip(preloads[step]), child.scope)
			}
		}
	}
	stmt.Preloads = preloads
}

// The server's answers that a row lock gives a meaning to.
const (
	lockNotAvailable    = "55P03"
	featureNotSupported = "0A000"
	undefinedTable      = "42P01"
)

// verdict is what err, which the server or the driver answered, means for the row lock; err itself if nothing.
func (l RowLockClause) verdict(stmt *gorm.Statement, err error) error {
	verdict := &rowLockError{cause: err, what: "rows of " + tableName(stmt)}
	switch state := sqlState(err); {
	case state == lockNotAvailable && l.try:
		verdict.state = ErrNotAcquired
	case state == lockNotAvailable && l.timeout > 0:
		verdict.state, verdict.detail = ErrLockTimeout, fmt.Sprintf(", after %s", l.timeout)
	case state == lockNotAvailable:
		verdict.state, verdict.detail = ErrLockTimeout, ", after the session's lock_timeout"
	case state == featureNotSupported && strings.Contains(err.Error(), l.strength.String()):
		return fmt.Errorf("gormlock: %s: %v does not go with this query, lock the rows in a sub-query or with a Find before: %w", tableName(stmt), l.strength, err)
	case state == undefinedTable && len(l.of) > 0 && strings.Contains(err.Error(), l.strength.String()):
		return fmt.Errorf("gormlock: %s: Of(%q) must name tables as the query names them: %w", tableName(stmt), l.of, err)
	default:
		return err
	}
	return verdict
}

// rowLockError is a row lock that was not granted: errors.Is finds the state, errors.As the driver's error.
type rowLockError struct {
	state, cause error
	what, detail string
}

func (e *rowLockError) Error() string {
	return "gormlock: lock " + e.what + ": " + strings.TrimPrefix(e.state.Error(), "gormlock: ") + e.detail
}

func (e *rowLockError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.state}
	}
	return []error{e.state, e.cause}
}
