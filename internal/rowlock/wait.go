package rowlock

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

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// rowWait is a mark among the clauses of a statement: the query runs under its row lock, and under a savepoint if a
// locked row is an error.
const rowWait = "gormlock:row_wait"

// The texts before and after a query that may fail because of a lock. Each is one message. The server keeps the old lock_timeout in
// a setting of gormlock, so it need not be read first. Queries may be nested: the setting holds the old values of all, the newest first.
// A setting outlasts the release of its savepoint, so it must be restored.
const (
	openTry      = "SAVEPOINT gormlock"
	setTimeout   = "SELECT set_config('gormlock.lock_timeout', concat_ws(' ', current_setting('lock_timeout'), current_setting('gormlock.lock_timeout', true)), true), set_config('lock_timeout', '%s', true)"
	closeTry     = "RELEASE SAVEPOINT gormlock"
	closeTimeout = "SELECT set_config('lock_timeout', split_part(kept, ' ', 1), true), set_config('gormlock.lock_timeout', substr(kept, strpos(kept || ' ', ' ') + 1), true) " +
		"FROM current_setting('gormlock.lock_timeout') AS kept; RELEASE SAVEPOINT gormlock"
	undo = "ROLLBACK TO SAVEPOINT gormlock; RELEASE SAVEPOINT gormlock"
)

// Begin runs before a query. take takes the query's advisory locks, if it has any. It runs under the savepoint of the row lock, so that a
// refused row frees them too.
func Begin(db *gorm.DB, locks bool, take func(*gorm.DB)) {
	stmt := db.Statement
	statement.WasSent(stmt) // removes the note of a query that panicked
	letWrite(stmt)
	l, ok := On(stmt)
	if !ok || db.Error != nil || db.DryRun {
		locks = false
	}
	if !locks {
		take(db)
	}
	if !ok || db.Error != nil {
		mustReachGiven(db)
		return
	}
	if err := l.admit(db); err != nil {
		fault.Add(db, err)
		return
	}
	l.lockPreloaded(stmt)
	l = l.within(install.Of(db).DefaultTimeout)
	if l.Skip && dialect.Of(db).IsPostgres() { // the constants are PostgreSQL's
		install.Of(db).Constants.Watch(stmt)
	}
	if db.DryRun {
		return
	}
	if l.open(db, locks, take); db.Error == nil {
		mustBeSent(stmt, l.begins(stmt), "")
		l.Began = install.Of(db).Began()
		stmt.Clauses[rowWait] = clause.Clause{Expression: l}
	}
}

// open sets the savepoint and then the limit of the wait. It takes the advisory locks between the two, because they have their own limit.
func (l Lock) open(db *gorm.DB, locks bool, take func(*gorm.DB)) {
	texts := l.openTexts()
	if dialect.Of(db).RefusesLocksSafely() {
		texts = nil
	}
	if locks && len(texts) > 0 {
		if l.begin(db, texts[0]); db.Error != nil {
			return
		}
	}
	if locks {
		if take(db); db.Error != nil {
			if len(texts) > 0 {
				l.end(db, undo) // even if the transaction is aborted: nothing was done since
			}
			return
		}
		texts = texts[min(len(texts), 1):]
	}
	if len(texts) > 0 {
		l.begin(db, strings.Join(texts, "; "))
	}
}

func (l Lock) begin(db *gorm.DB, text string) {
	if err := l.send(db.Statement.Context, db.Statement, text); err != nil {
		fault.Add(db, l.Verdict(db.Statement, err))
	}
}

// End runs after a query, whether it succeeded or failed.
func End(db *gorm.DB) {
	stmt := db.Statement
	sent := statement.WasSent(stmt)
	l, ran := stmt.Clauses[rowWait].Expression.(Lock)
	if ran {
		delete(stmt.Clauses, rowWait)
		if l.mayFail() && !dialect.Of(db).RefusesLocksSafely() {
			l.close(db)
		}
	}
	if !sent && db.Error == nil {
		fault.Add(db, notSent(stmt))
	}
	if !ran {
		return
	}
	if db.Error != nil {
		if verdict := l.Verdict(stmt, db.Error); verdict != db.Error { //nolint:errorlint // the same value, not the same kind
			db.Error = nil
			fault.Add(db, verdict)
		}
	}
	if db.Error == nil {
		l.loadJoined(stmt)
	}
	l.Tell(stmt.Context, install.Of(db), statement.TableName(stmt), db.RowsAffected, db.Error)
}

// BeginRow runs before Row, Rows and Scan. Their rows are still open when the call returns, so nothing can be executed after
// the query.
func BeginRow(db *gorm.DB) {
	statement.WasSent(db.Statement) // removes the note of a query that panicked
	letWrite(db.Statement)
	l, ok := On(db.Statement)
	if !ok || db.Error != nil {
		return
	}
	if err := l.admit(db); err != nil {
		fault.Add(db, err)
		return
	}
	const cure = "need Find instead of Row, Rows or Scan, whose rows are still open"
	switch {
	case l.mayFail():
		fault.Add(db, fmt.Errorf("gormlock: %s: Try and Timeout of a row lock %s", statement.TableName(db.Statement), cure))
	case l.within(install.Of(db).DefaultTimeout).mayFail():
		fault.Add(db, fmt.Errorf("gormlock: %s: a row lock and the plugin's DefaultTimeout %s", statement.TableName(db.Statement), cure))
	case !db.DryRun:
		mustBeSent(db.Statement, l.begins(db.Statement), "")
	}
}

// EndRow runs after Row, Rows and Scan, before next.
func EndRow(next func(*gorm.DB)) func(*gorm.DB) {
	return func(db *gorm.DB) {
		if sent := statement.WasSent(db.Statement); !sent && db.Error == nil {
			closeRows(db.Statement)
			fault.Add(db, notSent(db.Statement))
		}
		next(db)
	}
}

// Refuse runs before updates, deletes and raw SQL, and refuses row locks: these statements have no FOR clause. An update of FirstOrCreate may
// carry one, because its row was read under the lock.
func Refuse(db *gorm.DB) {
	refuse(db, statement.InFirstOrCreate)
}

// RefuseInCreate runs before creates, and refuses row locks: the insert itself locks a new row until the transaction ends. Only
// FirstOrCreate may have one, for the row that it looks for, unless its create ignores conflicts: then the row could stay unlocked.
func RefuseInCreate(db *gorm.DB) {
	refuse(db, func() bool {
		_, upserts := db.Statement.Clauses["ON CONFLICT"]
		return !upserts && statement.InFirstOrCreate()
	})
}

func refuse(db *gorm.DB, unless func() bool) {
	if l, ok := On(db.Statement); ok && db.Error == nil && !unless() {
		fault.Add(db, fmt.Errorf("gormlock: %v is for queries, this statement would run without it: leave it out", l.Strength))
	}
}

// within is the lock with the limit d, unless it has a limit of its own.
func (l Lock) within(d time.Duration) Lock {
	if !l.Try && !l.Skip && l.Timeout == 0 {
		l.Timeout = d
	}
	return l
}

// mayFail reports whether a locked row is an error. Without a savepoint this error would abort the transaction.
func (l Lock) mayFail() bool { return l.Try || l.Timeout > 0 }

// openTexts are the texts before the query, the savepoint first.
func (l Lock) openTexts() []string {
	switch {
	case !l.mayFail():
		return nil
	case l.Timeout == 0:
		return []string{openTry}
	}
	ms := (l.Timeout + time.Millisecond - 1).Milliseconds()
	return []string{openTry, strings.Replace(setTimeout, "%s", strconv.FormatInt(ms, 10), 1)}
}

// close releases the savepoint, or rolls back to it if a row was locked. After any other error of the server the
// transaction is aborted, as it would be without the savepoint.
func (l Lock) close(db *gorm.DB) {
	switch state := sqlstate.Of(db.Error); {
	case state == sqlstate.LockNotAvailable:
		l.end(db, undo)
	case state != "":
	case l.Timeout > 0:
		l.end(db, closeTimeout)
	default:
		l.end(db, closeTry)
	}
}

// end sends the text that ends the savepoint. If ctx has ended, it sends the text without ctx, because the transaction may go on.
func (l Lock) end(db *gorm.DB, text string) {
	ctx := db.Statement.Context
	err := ctx.Err()
	if err == nil {
		err = l.send(ctx, db.Statement, text)
	}
	if err != nil && ctx.Err() != nil {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		err = l.send(bounded, db.Statement, text)
	}
	if err != nil && (db.Error == nil || sqlstate.Of(db.Error) != "") {
		fault.Add(db, fmt.Errorf("gormlock: %s: the savepoint of the row lock: %w", statement.TableName(db.Statement), err))
	}
}

// closing bounds what is sent after the context of the query has ended.
const closing = 5 * time.Second

// send sends statements without arguments as one message.
func (l Lock) send(ctx context.Context, stmt *gorm.Statement, text string) error {
	_, err := statement.Transaction(stmt).ExecContext(ctx, text)
	return err
}

// lockPreloaded adds the lock to the queries of Preload, for each step of each path. GORM decides which steps are
// separate queries.
func (l Lock) lockPreloaded(stmt *gorm.Statement) {
	if !l.Preloaded || len(stmt.Preloads) == 0 {
		return
	}
	child := l
	child.Of, child.Skip = nil, false
	preloads := maps.Clone(stmt.Preloads)
	done := map[string]bool{}
	for path := range stmt.Preloads {
		for end := range len(path) + 1 {
			if step := path[:end]; (end == len(path) || path[end] == '.') && !done[step] {
				done[step] = true
				preloads[step] = append(slices.Clip(preloads[step]), child.AddTo)
			}
		}
	}
	stmt.Preloads = preloads
}

// Verdict returns the error that the caller gets if the server or the driver answers with err. It returns err itself if that does not concern the
// row lock.
func (l Lock) Verdict(stmt *gorm.Statement, err error) error {
	verdict := &RefusedError{cause: err, What: "rows of " + statement.TableName(stmt)}
	switch state := sqlstate.Of(err); {
	case state == sqlstate.LockNotAvailable && l.Try:
		verdict.State = fault.ErrNotAcquired
	case state == sqlstate.LockNotAvailable && l.Timeout > 0:
		verdict.State, verdict.detail = fault.ErrLockTimeout, fmt.Sprintf(", after %s", l.Timeout)
	case state == sqlstate.LockNotAvailable:
		verdict.State, verdict.detail = fault.ErrLockTimeout, ", after the session's "+dialect.Of(stmt.DB).LockTimeout()
	case state == sqlstate.FeatureNotSupported && strings.Contains(err.Error(), l.Strength.String()):
		return fmt.Errorf("gormlock: %s: %v is not allowed with this query, lock the rows in a sub-query or with a Find before: %w", statement.TableName(stmt), l.Strength, err)
	case state == sqlstate.UndefinedTable && len(l.Of) > 0 && strings.Contains(err.Error(), l.Strength.String()):
		return fmt.Errorf("gormlock: %s: Of(%q) must name tables as the query names them: %w", statement.TableName(stmt), l.Of, err)
	default:
		return err
	}
	return verdict
}

// RefusedError is a row lock that was not granted: errors.Is finds the state, errors.As the driver's error.
type RefusedError struct {
	State, cause error
	What, detail string
}

func (e *RefusedError) Error() string {
	return "gormlock: lock " + e.What + ": " + strings.TrimPrefix(e.State.Error(), "gormlock: ") + e.detail
}

func (e *RefusedError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.State}
	}
	return []error{e.State, e.cause}
}
