package gormlock

import (
	"fmt"
	"time"

	"gorm.io/gorm"
)

// OnceSchema is the DDL of the table of [Once], for those who keep their own migrations.
const OnceSchema = `CREATE TABLE IF NOT EXISTS gormlock_once (
	key        text PRIMARY KEY,
	request    bytea,                              -- SHA-256 of the request, NULL: not compared
	result     json,                               -- as it was stored, byte for byte
	created_at timestamptz NOT NULL DEFAULT now(),
	expires_at timestamptz                         -- NULL: when the sweep says
);
CREATE INDEX IF NOT EXISTS gormlock_once_created_at ON gormlock_once (created_at) WHERE expires_at IS NULL;
CREATE INDEX IF NOT EXISTS gormlock_once_expires_at ON gormlock_once (expires_at) WHERE expires_at IS NOT NULL`

// onceMigration creates the table where it is missing. Programs that start together take turns, for IF NOT EXISTS alone
// fails in some of them; and a role that may not create tables is asked for nothing when the table is there.
const onceMigration = `DO $gormlock$ BEGIN
	IF to_regclass('gormlock_once') IS NULL THEN
		PERFORM pg_advisory_xact_lock(7452331120164530001);
		` + OnceSchema + `;
	END IF;
END $gormlock$`

// MigrateOnce creates the table of [Once] where the search_path finds none. Any number of programs may call it at once.
// On failure nothing was created.
func MigrateOnce(db *gorm.DB) error {
	if err := usableForOnce(db); err != nil {
		return err
	}
	if err := db.Session(&gorm.Session{NewDB: true}).Exec(onceMigration).Error; err != nil {
		return fmt.Errorf("gormlock: create table gormlock_once: %w", err)
	}
	return nil
}

// onceSweep skips what another sweep has locked. Each part of its condition has an index.
const onceSweep = `WITH due AS MATERIALIZED (
	SELECT key FROM gormlock_once
	WHERE expires_at < now() OR (expires_at IS NULL AND created_at < now() - ? * interval '1 microsecond')
	LIMIT ? FOR UPDATE SKIP LOCKED)
DELETE FROM gormlock_once o USING due WHERE o.key = due.key`

// SweepOnce removes up to limit keys of [Once] that are past their [Expires] or, if they have none, older than
// olderThan, and returns how many. Several programs may sweep at once. Call it again until it removes fewer than limit:
//
//	for {
//		n, err := gormlock.SweepOnce(db, 30*24*time.Hour, 1000)
//		if err != nil || n < 1000 {
//			break
//		}
//	}
//
// A key that is gone can be used again, so olderThan has to be longer than anybody repeats a request.
func SweepOnce(db *gorm.DB, olderThan time.Duration, limit int) (int64, error) {
	switch err := usableForOnce(db); {
	case err != nil:
		return 0, err
	case olderThan < time.Microsecond:
		return 0, fmt.Errorf("%w: sweep keys older than %s, they must be kept for some time", ErrOption, olderThan)
	case limit < 1:
		return 0, fmt.Errorf("%w: sweep up to %d keys, one is the least", ErrOption, limit)
	}
	swept := db.Session(&gorm.Session{NewDB: true}).Exec(onceSweep, olderThan.Microseconds(), limit)
	if swept.Error != nil {
		return 0, fmt.Errorf("gormlock: sweep gormlock_once: %w", swept.Error)
	}
	return swept.RowsAffected, nil
}

func usableForOnce(db *gorm.DB) error {
	if err := usable(db); err != nil {
		return err
	}
	if !isPostgres(db) {
		return fmt.Errorf("%w, not %s: gormlock_once", ErrNotPostgres, db.Name())
	}
	return nil
}
