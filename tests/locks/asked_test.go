package locks_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A function of gormlock that is given a db on which a lock was asked takes it, also if it makes no statement of that db.
func TestLocks_askedOfFunctions(t *testing.T) {
	t.Parallel()
	other := pgtest.Key(t)
	for name, call := range map[string]func(tx *gorm.DB) error{
		"AcquireXactLock": func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{other}) },
		"FenceFor":        func(tx *gorm.DB) error { return stand.ErrorOf(gormlock.FenceFor(tx, other)) },
		"Once": func(tx *gorm.DB) error {
			return stand.ErrorOf(gormlock.Once(tx, "key", func(*gorm.DB) (int, error) { return 1, nil }))
		},
		"SweepOnce":   func(tx *gorm.DB) error { return stand.ErrorOf(gormlock.SweepOnce(tx, time.Hour, 1)) },
		"MigrateOnce": gormlock.MigrateOnce,
	} {
		for how, ask := range map[string]func(tx *gorm.DB, key lockkey.Key) *gorm.DB{
			"a scope":  func(tx *gorm.DB, key lockkey.Key) *gorm.DB { return tx.Scopes(gormlock.WithXactLock(key)) },
			"a clause": func(tx *gorm.DB, key lockkey.Key) *gorm.DB { return tx.Clauses(gormlock.XactLock(key)) },
			"a scope of a scope": func(tx *gorm.DB, key lockkey.Key) *gorm.DB {
				return tx.Scopes(func(db *gorm.DB) *gorm.DB { return db.Scopes(gormlock.WithXactLock(key)) })
			},
			"a session": func(tx *gorm.DB, key lockkey.Key) *gorm.DB {
				return tx.Scopes(gormlock.WithXactLock(key)).Session(&gorm.Session{})
			},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				db := stand.Open(t)
				stand.Must(t, gormlock.MigrateAll(db))
				key := pgtest.Key(t)
				stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
					err := call(ask(tx, key))
					if err == nil && !pgtest.Held(t, key) {
						t.Error("the lock is not held")
					}
					return err
				}))
				pgtest.AssertFree(t, key)
			})
		}
	}
}
