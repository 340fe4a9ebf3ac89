package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/attempt"
	"github.com/gormlock/gormlock/internal/check"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/xact"
	"github.com/gormlock/gormlock/lockkey"
)

// Key is the lock of all migrations of a database.
var Key = lockkey.Of("gormlock", "migrate")

// slice is how long one wait for the lock lasts. A wait holds a snapshot, which a CREATE INDEX CONCURRENTLY of somebody else
// waits for; and between two of them the holder is looked for.
const slice = 500 * time.Millisecond

// Auto runs GORM's AutoMigrate of the models in one transaction, under the lock of migrations. It waits for the lock up to
// patience, and no longer than the context of db.
func Auto(db *gorm.DB, models []any, patience time.Duration) error {
	if err := check.Models(db, models); err != nil {
		return err
	}
	if !statement.IsPostgres(db) {
		return fmt.Errorf("%w, not %s: AutoMigrate", fault.ErrNotPostgres, db.Name())
	}
	db = journal.OnNamed(db)
	for _, value := range models {
		stmt := &gorm.Statement{DB: db}
		if err := stmt.Parse(value); err != nil {
			return err
		}
		if err := journal.RefuseElsewhere(db, "AutoMigrate", stmt.Schema.Table, db.Statement.ConnPool); err != nil {
			return err
		}
	}
	wait := &waiting{db: db, until: time.Now().Add(patience), patience: patience}
	if statement.Transaction(db.Statement) != nil {
		if err := wait.turn(func(request *lockrequest.Request) error { return xact.Acquire(db, request) }); err != nil {
			return err
		}
		return statement.Nested(db, func(tx *gorm.DB) error { return all(tx, models) })
	}
	return wait.turn(func(request *lockrequest.Request) error {
		held := false
		call := &attempt.Call{Locks: []*lockrequest.Request{request}}
		err := call.Run(db, func(tx *gorm.DB) error {
			held = true
			return all(tx, models)
		})
		if held && err != nil {
			return done{err} // not of the wait, whatever it is
		}
		return err
	})
}

// done is the error of the migration itself.
type done struct{ error }

func (d done) Unwrap() error { return d.error }

func all(tx *gorm.DB, models []any) error {
	if err := tx.AutoMigrate(models...); err != nil {
		return fmt.Errorf("gormlock: AutoMigrate, nothing was changed: %w", err)
	}
	return check.Columns(tx, models)
}

// waiting is a wait for the lock of migrations.
type waiting struct {
	db       *gorm.DB
	until    time.Time
	patience time.Duration
	told     string // for whom, as was said last
}

// turn asks for the lock, slice by slice, until it is granted, the time is up or the context ends.
func (w *waiting) turn(ask func(*lockrequest.Request) error) error {
	for {
		left := min(slice, max(time.Until(w.until), time.Millisecond))
		request, err := lockrequest.New([]lockkey.Key{Key}, advisory.Timeout(left), advisory.AllowSnapshot())
		if err != nil {
			return err
		}
		err = ask(request)
		if own := (done{}); errors.As(err, &own) {
			return own.error
		}
		ended := w.db.Statement.Context.Err()
		if err == nil || ended == nil && !errors.Is(err, advisory.ErrLockTimeout) {
			return err
		}
		who := w.holder()
		if who == nobody && ended != nil && w.told != "" {
			who = w.told // a transaction that ended with its context can ask no more
		}
		if ended != nil || !time.Now().Before(w.until) {
			return fmt.Errorf("gormlock: AutoMigrate, nothing was changed: it waited for the migration of %s: %w", who, fault.Because(err))
		}
		if who != w.told {
			w.told = who
			w.db.Logger.Warn(w.db.Statement.Context, "gormlock: AutoMigrate waits for the migration of %s, at most %s", who, w.patience)
		}
	}
}

const nobody = "somebody who has gone meanwhile"

// holder says who has the lock, for people. It asks on the connection of a transaction that waits, unless that has ended.
func (w *waiting) holder() string {
	id, _ := Key.Int64()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.db.Statement.Context), 2*time.Second)
	defer cancel()
	session := journal.OnSource(w.db, "").WithContext(ctx)
	if tx := statement.Transaction(w.db.Statement); tx != nil && ctx.Err() == nil && w.db.Statement.Context.Err() != nil {
		return nobody // the transaction is over with its context
	}
	var found []string
	err := session.Raw(`SELECT format('backend %s (%s, client %s, for %s)', pid, coalesce(nullif(application_name, ''), 'no application_name'),
			coalesce(client_addr::text, 'local'), date_trunc('second', clock_timestamp() - xact_start))
		FROM pg_locks JOIN pg_stat_activity USING (pid)
		WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND classid = ? AND objid = ?`, uint32(uint64(id)>>32), uint32(uint64(id))).Scan(&found).Error //nolint:gosec // both halves
	switch {
	case err != nil:
		return "somebody, who is not known: " + err.Error()
	case len(found) == 0:
		return nobody
	}
	return found[0]
}

// usable says why db can run nothing.
func usable(db *gorm.DB, what string) error {
	if err := install.Usable(db); err != nil {
		return err
	}
	if !statement.IsPostgres(db) {
		return fmt.Errorf("%w, not %s: %s", fault.ErrNotPostgres, db.Name(), what)
	}
	return nil
}
