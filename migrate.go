package gormlock

import (
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/check"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/migrate"
)

// Check returns one error that names everything wrong with the models: tags that are misspelled or misplaced, fields that
// cannot hold a version, tables and columns that are missing or of another type, keys without a unique index, versions that may
// be NULL, are computed, or have no default or a wrong one, a missing table of fencing tokens if a model has a fence, and
// missing columns in the table of [Once] if it exists. Call it at start:
//
//	if err := gormlock.Check(db, &Account{}, &Report{}); err != nil {
//		log.Fatal(err)
//	}
//
// It changes nothing, and refuses a lock on db. On other databases than PostgreSQL it looks at tags, tables and columns only; in a dry run at tags
// only.
func Check(db *gorm.DB, models ...any) error { return fault.Caused(db, check.All(db, models)) }

// AutoMigrate runs GORM's AutoMigrate in one transaction, in one process at a time. All models are migrated, or none, and
// the error says why. First it checks their tags, and afterwards the columns of the tags; [Check] checks more. It takes the
// one lock of migrations of the database. If another process migrates, it waits until the context of db ends, and five
// minutes at most. GORM's logger and the error name that process.
//
// If the caller has a transaction open, AutoMigrate is part of it, and the lock is held until that transaction ends. GORM's own
// db.AutoMigrate takes no lock and checks no tags, because it runs no plugin.
func AutoMigrate(db *gorm.DB, models ...any) error {
	return fault.Caused(db, migrate.Auto(db, models, 5*time.Minute))
}

// MigrateAll creates gormlock's own tables (fencing tokens, leases, schedules, [Once], names of keys) if the search_path
// finds none, and adds what tables of an earlier version lack. It does everything in one transaction, or nothing, and takes
// locks on db. Any number of programs may call it at once. If a role may not create tables, and nothing is missing, it returns nil. If a table
// was made in another way, and one of its columns has a wrong NOT NULL or default, that is an error.
func MigrateAll(db *gorm.DB) error { return fault.Caused(db, migrate.Own(db, OnceSchema)) }
