package gormlock

import (
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/check"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/migrate"
)

// Check looks at models before a program uses them, and names all that are wrong in one error: tags that are misspelled or
// misplaced, fields of a type that cannot hold a version, tables and columns that are missing or of another type, versions
// that may be NULL or have no default, and the table of fencing tokens where a model has a fence. Where the table of [Once] is
// there, it has all columns. Call it at start:
//
//	if err := gormlock.Check(db, &Account{}, &Report{}); err != nil {
//		log.Fatal(err)
//	}
//
// It changes nothing. On databases other than PostgreSQL it looks at tags, tables and columns; in a dry run at tags alone.
func Check(db *gorm.DB, models ...any) error { return fault.Caused(db, check.All(db, models)) }

// AutoMigrate is GORM's AutoMigrate in one transaction, by one process at a time: all models are migrated, or an error says
// why nothing was. Before it looks at their tags, and after it at the columns these are about; [Check] says more. It wants
// the lock of migrations, which is one for the database, and waits for the migration of another process until the context
// of db ends, and five minutes at most; GORM's logger and the error say for whom.
//
// In a transaction of the caller it is a part of that one: it decides, and the lock is held until it ends. GORM's own
// db.AutoMigrate takes no lock, and looks at no tag: nothing of a plugin runs in it.
func AutoMigrate(db *gorm.DB, models ...any) error {
	return fault.Caused(db, migrate.Auto(db, models, 5*time.Minute))
}

// MigrateAll makes the tables of gormlock itself where the search_path finds none: of fencing tokens, leases, schedules,
// [Once] and the names of keys; and it adds what tables of an earlier version lack. All is done in one transaction, or
// nothing. Any number of programs may call it at once. A role that may not create tables gets nil when all is there.
func MigrateAll(db *gorm.DB) error { return fault.Caused(db, migrate.Own(db, OnceSchema)) }
