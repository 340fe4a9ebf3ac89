package once

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/reading"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// Call is one call of Once. Its row is inserted without a result before the effect, and gets the result after it, so
// that nobody else ever sees a row without one.
type Call struct {
	Session   *gorm.DB
	tx        transaction
	Key       string
	Request   []byte
	Expires   time.Duration
	savepoint string
}

// transaction is an open transaction that can also run queries.
type transaction interface {
	gorm.ConnPool
	advisory.Tx
}

// onceCalls numbers the savepoints: calls nest, and each rollback must find its own savepoint.
var onceCalls atomic.Uint64

// longestResult is how many bytes a result can have. It is sent as text, and the server parses it.
const longestResult = 1 << 20

// Run runs effect and stores its result, or finds the result that was stored before. It reads the stored result into dest, a pointer to the same
// type.
func (o *Call) Run(effect func(*gorm.DB) (any, error), dest any) error {
	before := o.written()
	for range 3 { // again if a sweep removed the key between two statements
		fresh, err := o.claim()
		if err != nil {
			return err
		}
		if fresh {
			return o.perform(effect, dest, before)
		}
		found, err := o.repeat(dest)
		if err != nil || found {
			return err
		}
	}
	return fmt.Errorf("gormlock: once %q: its row in gormlock_once can neither be inserted nor read", o.Key)
}

// claim inserts the row after a savepoint. If an open transaction has inserted it, claim waits for the end of that.
func (o *Call) claim() (fresh bool, err error) {
	o.savepoint = fmt.Sprintf("gormlock_once_%d", onceCalls.Add(1))
	request, expires := "NULL", "NULL"
	if o.Request != nil {
		request = "decode('" + hex.EncodeToString(o.Request) + "', 'hex')"
	}
	if o.Expires > 0 {
		expires = fmt.Sprintf("now() + %d * interval '1 microsecond'", o.Expires.Microseconds())
	}
	// One message without parameters: the savepoint costs no round trip. The caller's values are written as hexadecimal digits.
	result, err := o.tx.ExecContext(o.ctx(), fmt.Sprintf(
		"SAVEPOINT %s; INSERT INTO gormlock_once (key, request, expires_at) VALUES (%s, %s, %s) ON CONFLICT (key) DO NOTHING",
		o.savepoint, text([]byte(o.Key)), request, expires))
	if err == nil {
		var rows int64
		rows, err = result.RowsAffected()
		fresh = rows == 1
	}
	switch state := sqlstate.Of(err); {
	case err == nil:
		o.savepointSet()
		return fresh, nil
	case errors.Is(err, sql.ErrTxDone), state == sqlstate.NoActiveSQLTransaction, state == sqlstate.InFailedSQLTransaction: // the transaction was over or aborted before the call, so no savepoint was set
		return false, o.explain(err)
	default:
		err = o.undo(o.explain(err))
		if state == sqlstate.ReadOnlySQLTransaction && o.onStandby() {
			err = fmt.Errorf("%w: keys of Once are stored on the primary: %w", advisory.ErrStandby, fault.Because(err))
		}
		return false, err
	}
}

// onStandby asks the server whether it is a standby.
func (o *Call) onStandby() (is bool) {
	rows, err := o.tx.QueryContext(o.ctx(), "SELECT pg_is_in_recovery()")
	if err != nil {
		return false
	}
	defer rows.Close()
	return rows.Next() && rows.Scan(&is) == nil && rows.Err() == nil && is
}

// written is how many statements have written something in the transaction, as far as gormlock sees.
func (o *Call) written() int {
	if j := journal.Of(o.Session.Statement); j != nil {
		return j.Written()
	}
	return 1
}

// read reads a stored result.
func (o *Call) read(stored []byte, dest any) error {
	if !utf8.Valid(stored) { // package json would change the text
		return fmt.Errorf("gormlock: once %q: the stored result is not UTF-8", o.Key)
	}
	if err := json.Unmarshal(stored, dest); err != nil {
		return fmt.Errorf("gormlock: once %q: the stored result is no %s: %w", o.Key, reflect.TypeOf(dest).Elem(), err)
	}
	return o.refuseRounded(stored, dest)
}

// perform runs effect and stores the result, or undoes everything. before is how many statements had written something before the row was inserted.
func (o *Call) perform(effect func(*gorm.DB) (any, error), dest any, before int) (err error) {
	open, claimed := true, o.written()
	defer func() {
		if open { // the effect failed, panicked or ended the goroutine
			err = o.undo(err)
		}
	}()
	var stored []byte
	var made any
	err = journal.Within(o.Session, func(tx *gorm.DB) (err error) {
		if made, err = effect(tx); err == nil {
			stored, err = Stored(o.Key, made)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(stored) > longestResult {
		return fmt.Errorf("gormlock: once %q: the result has %d bytes, at most %d are allowed: store it elsewhere, and return its key", o.Key, len(stored), longestResult)
	}
	if err := o.refuseOpen(stored, made, dest); err != nil {
		return err
	}
	if err := o.read(stored, dest); err != nil {
		return err
	}
	if stored, err = o.loseUnkept(stored, made, dest); err != nil {
		return err
	}
	if before > 0 || o.written() > claimed { // the versions in the result may never be committed
		reading.KeepResult(o.Session, dest)
	}
	if err := o.store(stored); err != nil {
		return err
	}
	open = false
	o.savepointReleased()
	return nil
}

// store stores the result in the row that claim has inserted. It sends one message, and the last answer does not say whether the row
// was found. So a division by zero fails if there is no row without a result, for example because the search_path leads to another table.
func (o *Call) store(result []byte) error {
	_, err := o.tx.ExecContext(o.ctx(), fmt.Sprintf("WITH stored AS (UPDATE gormlock_once SET result = %s::json WHERE key = %s AND result IS NULL RETURNING 1) "+
		"SELECT 1 / count(*) FROM stored; RELEASE SAVEPOINT %s", text(result), text([]byte(o.Key)), o.savepoint))
	const moved = "if its function has changed search_path or role, let it set them back"
	switch sqlstate.Of(err) {
	case "":
	case sqlstate.DivisionByZero:
		return fmt.Errorf("gormlock: once %q: store the result: its row in gormlock_once is not found any more: %s; or else it has removed the row", o.Key, moved)
	case sqlstate.UndefinedTable, sqlstate.InsufficientPrivilege:
		err = fmt.Errorf("%w: %s", err, moved)
	}
	if err != nil {
		return fmt.Errorf("gormlock: once %q: store the result: %w", o.Key, err)
	}
	return nil
}

// repeat reads the stored result. found is false if the row was removed meanwhile.
func (o *Call) repeat(dest any) (found bool, err error) {
	found, stored, request, own, err := o.look()
	switch {
	case err != nil:
		return false, o.undo(err)
	case found && stored == nil:
		err = fmt.Errorf("gormlock: once %q: there is no result: its function is still running in this transaction, or ended the transaction it ran in", o.Key)
	case found && o.Request != nil && string(o.Request) != string(request):
		err = fmt.Errorf("%w: once %q", fault.ErrOtherRequest, o.Key)
	case found:
		if err = o.read(stored, dest); err != nil {
			break
		}
		if o.loseChanged(stored, dest); own {
			reading.KeepResult(o.Session, dest)
		}
	}
	if _, released := o.tx.ExecContext(o.ctx(), "RELEASE SAVEPOINT "+o.savepoint); err == nil && released != nil {
		err = fmt.Errorf("gormlock: once %q: %w", o.Key, released)
	}
	o.savepointReleased()
	return found, err
}

// lookSQL does not depend on client_encoding and bytea_output: its texts are ASCII.
const lookSQL = `SELECT encode(convert_to(result::text, 'UTF8'), 'base64'), encode(request, 'base64'), created_at = now()
FROM gormlock_once WHERE key = convert_from(decode($1, 'hex'), 'UTF8')`

// look looks for the row. own says that this transaction has made it: created_at is its now(), which is when the transaction began.
func (o *Call) look() (found bool, stored, request []byte, own bool, err error) {
	rows, err := o.tx.QueryContext(o.ctx(), lookSQL, hex.EncodeToString([]byte(o.Key)))
	if err != nil {
		return false, nil, nil, false, o.explain(err)
	}
	defer rows.Close()
	if rows.Next() {
		found = true
		var result, hash sql.NullString
		err := rows.Scan(&result, &hash, &own)
		if err == nil && result.Valid {
			stored, err = base64.StdEncoding.DecodeString(result.String)
		}
		if err == nil && hash.Valid {
			request, err = base64.StdEncoding.DecodeString(hash.String)
		}
		if err != nil {
			return false, nil, nil, false, o.explain(err)
		}
	}
	if err := rows.Err(); err != nil {
		return false, nil, nil, false, o.explain(err)
	}
	return found, stored, request, own, nil
}

// undo rolls back to the savepoint before the row. If that fails, nothing can be committed either: the
// server has aborted the transaction, or the connection is gone.
func (o *Call) undo(cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(o.ctx()), 5*time.Second)
	defer cancel()
	_, err := o.tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT "+o.savepoint+"; RELEASE SAVEPOINT "+o.savepoint)
	if j := journal.Of(o.Session.Statement); j != nil {
		j.RollbackTo(o.savepoint)
	}
	o.savepointReleased()
	if err == nil {
		return cause
	}
	lost := fmt.Errorf("gormlock: once %q: the transaction is lost: %w", o.Key, err)
	if cause == nil { // a panic
		return lost
	}
	return fmt.Errorf("%w (%w)", cause, fault.Because(lost))
}

// savepointSet tells the journal of the savepoint, unless it knows: it hears of savepoints if the transaction began on
// gormlock's pool. With PlainTransactions it does not.
func (o *Call) savepointSet() {
	j := journal.Of(o.Session.Statement)
	if j == nil {
		return
	}
	if j.Last(o.savepoint) < 0 {
		j.Savepoint(o.savepoint)
	}
}

func (o *Call) savepointReleased() {
	if j := journal.Of(o.Session.Statement); j != nil {
		j.Release(o.savepoint)
	}
}

func (o *Call) explain(err error) error {
	if sqlstate.Of(err) == sqlstate.UndefinedTable {
		return fmt.Errorf("gormlock: once %q: %w (MigrateOnce creates the table)", o.Key, err)
	}
	return fmt.Errorf("gormlock: once %q: %w", o.Key, err)
}

func (o *Call) ctx() context.Context { return o.Session.Statement.Context }

// text is a value as a SQL expression. It is safe for any value.
func text(value []byte) string {
	return "convert_from(decode('" + hex.EncodeToString(value) + "', 'hex'), 'UTF8')"
}
