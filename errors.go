package gormlock

import (
	"errors"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
)

var (
	// ErrNotInstalled says that the database has no gormlock plugin: db.Use(gormlock.New()).
	ErrNotInstalled = errors.New("gormlock: the plugin is not installed, call db.Use(gormlock.New())")
	// ErrNotPostgres says that the feature needs PostgreSQL and the database is another.
	ErrNotPostgres = errors.New("gormlock: needs PostgreSQL")
	// ErrNoTransaction says that a lock was asked for where no transaction is open: it would be gone before the
	// statement is over. Use [Transaction], or a statement that GORM wraps in one. Nothing was executed.
	ErrNoTransaction = errors.New("gormlock: a lock needs a transaction, and none is open")
	// ErrSubQuery says that a lock stands on a part of a statement, a sub-query or a group of conditions, which takes
	// none. Put it on the statement around it. Nothing was executed.
	ErrSubQuery = errors.New("gormlock: a lock on a sub-query or a group of conditions is never taken, put it on the statement around it")
	// ErrOption says that an option's value, or a combination of options, means nothing.
	ErrOption = advisory.ErrOption
	// ErrSnapshotTaken says that the transaction's snapshot may be older than the lock. See [advisory.ErrSnapshotTaken].
	ErrSnapshotTaken = advisory.ErrSnapshotTaken
	// ErrNotAcquired says that a lock asked for with [Try] is held by somebody else.
	ErrNotAcquired = advisory.ErrNotAcquired
	// ErrLockTimeout says that a lock was not granted in time.
	ErrLockTimeout = advisory.ErrLockTimeout
	// ErrStandby says that a lock was asked for on a standby server, where it would exclude nobody.
	ErrStandby = advisory.ErrStandby
)

// IsRetryable reports whether running the whole transaction again can cure err: a serialization failure (40001), a
// deadlock (40P01), a stale version, a lock that timed out or was not acquired.
func IsRetryable(err error) bool {
	if errors.Is(err, ErrStale) || errors.Is(err, ErrNotAcquired) || errors.Is(err, ErrLockTimeout) {
		return true
	}
	switch sqlState(err) {
	case "40001", "40P01", "55P03":
		return true
	}
	return false
}

// sqlState is the SQLSTATE of err, "" when it has none. It is read by interface, so no driver is imported.
func sqlState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// because is err as the end of a longer text of ours, which has said already who speaks.
func because(err error) error { return reason{err} }

type reason struct{ error }

func (r reason) Error() string { return strings.TrimPrefix(r.error.Error(), "gormlock: ") }

func (r reason) Unwrap() error { return r.error }

// fail adds err to the statement so that errors.Is finds it to the end: GORM drops an earlier error from the chain when
// a later one, say of the rollback, joins it.
func fail(db *gorm.DB, err error) {
	_ = db.AddError(err)
	db.Statement.Settings.Store(failure{}, err)
}

type failure struct{}

// mendError puts the error of fail back into the chain.
func mendError(db *gorm.DB) {
	if db.Error == nil {
		return
	}
	failed, ok := db.Statement.Settings.Load(failure{})
	if !ok {
		return
	}
	db.Statement.Settings.Delete(failure{})
	err := failed.(error)
	if !errors.Is(db.Error, err) && strings.Contains(db.Error.Error(), err.Error()) {
		db.Error = &mended{text: db.Error.Error(), errs: []error{err, db.Error}}
	}
}

type mended struct {
	text string
	errs []error
}

func (e *mended) Error() string   { return e.text }
func (e *mended) Unwrap() []error { return e.errs }
