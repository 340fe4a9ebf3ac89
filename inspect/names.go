package inspect

import (
	"context"
	"database/sql"
	"log/slog"

	"github.com/gormlock/gormlock/internal/keynames"
	"github.com/gormlock/gormlock/observe"
)

// Names is an observer that stores the names of advisory locks in the table [Table],
// as gormlock.WithKeyNames does for locks of transactions. [KeepNames] makes one.
type Names struct{ recorder *keynames.Recorder } // nil: there is no database

// KeepNames stores the names of the locks that it observes, for managers of session
// locks:
//
//	names := inspect.KeepNames(db, nil)
//	defer names.Close()
//	m, err := sessionlock.Open(ctx, dsn, sessionlock.Observer(names))
//
// Only keys that are still held or waited for after a second get a row, in batches, on a
// connection of db. A caller never waits for the database. An error is logged once by
// logger, or by [slog.Default] if it is nil, and tried again.
func KeepNames(db *sql.DB, logger *slog.Logger) *Names {
	if db == nil {
		return &Names{}
	}
	return &Names{keynames.New(db, func(err error) {
		if logger == nil {
			logger = slog.Default()
		}
		logger.Error(err.Error())
	})}
}

// Observe implements [observe.Observer].
func (n *Names) Observe(_ context.Context, e observe.Event) {
	switch e.Kind {
	case observe.Acquired, observe.NotAcquired, observe.TimedOut:
		scope := keynames.Transaction
		if e.Source == "sessionlock" {
			scope = keynames.Session
		}
		if n.recorder != nil && e.Space != 0 && e.Key != "" {
			n.recorder.Note(keynames.ID{Space: e.Space, ID: e.ID}, scope, text(e.Key))
		}
	default:
	}
}

// Close ends what runs in the background. Names not written yet stay unwritten. If [KeepNames] was given a nil db, no
// name was written, and the error says so.
func (n *Names) Close() error {
	if n.recorder == nil {
		return errNilPool
	}
	n.recorder.Close()
	return nil
}

type text string

func (t text) String() string { return string(t) }
