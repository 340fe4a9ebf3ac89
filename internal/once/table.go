package once

import (
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/newtable"
	"github.com/gormlock/gormlock/internal/statement"
)

// Migrate creates the table with this DDL if the search_path finds none.
func Migrate(db *gorm.DB, ddl string) error {
	if err := usableForOnce(db); err != nil {
		return err
	}
	if err := mark.RefuseGiven(db, "MigrateOnce", "it makes one table: give it the db or the transaction itself", mark.Ours, mark.Scopes); err != nil {
		return err
	}
	table := newtable.Table{Name: "gormlock_once", Quoted: "gormlock_once", DDL: ddl, Lock: 7452331120164530001}
	if err := statement.Beside(db).Exec(table.Migration()).Error; err != nil {
		return fmt.Errorf("gormlock: create table gormlock_once: %w", err)
	}
	return nil
}

// sweep skips rows that another sweep has locked. Each part of its condition has an index.
const sweep = `WITH due AS MATERIALIZED (
	SELECT key FROM gormlock_once
	WHERE expires_at < now() OR (expires_at IS NULL AND created_at < now() - ? * interval '1 microsecond')
	LIMIT ? FOR UPDATE SKIP LOCKED)
DELETE FROM gormlock_once o USING due WHERE o.key = due.key`

// Sweep removes keys that are due.
func Sweep(db *gorm.DB, olderThan time.Duration, limit int) (int64, error) {
	if err := usableForOnce(db); err != nil {
		return 0, err
	}
	if err := mark.RefuseGiven(db, "SweepOnce", "it removes all keys that are due: give it the db itself", mark.Ours, mark.Scopes); err != nil {
		return 0, err
	}
	switch {
	case olderThan < time.Microsecond:
		return 0, fmt.Errorf("%w: sweep keys older than %s: the time must be at least 1µs", fault.ErrOption, olderThan)
	case limit < 1:
		return 0, fmt.Errorf("%w: sweep up to %d keys: the limit must be at least 1", fault.ErrOption, limit)
	}
	var swept int64
	err := journal.SendOnce(statement.Beside(db), func(db *gorm.DB) error {
		done := db.Exec(sweep, olderThan.Microseconds(), limit)
		swept = done.RowsAffected
		return done.Error
	})
	if err != nil {
		return 0, fmt.Errorf("gormlock: sweep gormlock_once: %w", err)
	}
	return swept, nil
}

func usableForOnce(db *gorm.DB) error {
	if err := install.Usable(db); err != nil {
		return err
	}
	if !statement.IsPostgres(db) {
		return fmt.Errorf("%w, not %s: gormlock_once", fault.ErrNotPostgres, db.Name())
	}
	return nil
}
