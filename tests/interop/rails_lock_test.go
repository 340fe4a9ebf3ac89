package interop

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
)

// railsLocks is what either side must find locked by the other.
func railsLocks(t *testing.T, process *railsProcess) {
	t.Run("R28 with_lock waits for LockRow", func(t *testing.T) {
		t.Parallel()
		s := shared{db: open(t), rails: process.session(t, "main")}
		s.rails.run(t, "tables")
		a := s.account(t)
		pid := int(s.rails.number(t, "sql('SELECT pg_backend_pid()')"))
		var done <-chan error
		must(t, s.db.Transaction(func(tx *gorm.DB) error {
			must(t, gormlock.LockRow(tx, &a))
			_ = s.rails.raises(t, "Account.transaction { @a.lock!('FOR UPDATE NOWAIT') }", "ActiveRecord::LockWaitTimeout")
			done = s.rails.start("@a.with_lock { @a.update!(balance: @a.balance * 2) }")
			pgtest.WaitBackendBlocked(t, pid)
			return tx.Model(&a).Update("balance", a.Balance+1).Error
		}))
		must(t, <-done) // it read the row again under the lock: not stale
		equal(t, "balance", s.row(t, a.ID).Balance, 202)
	})
	t.Run("R28 LockRow waits for with_lock", func(t *testing.T) {
		t.Parallel()
		s := shared{db: open(t), rails: process.session(t, "main")}
		s.rails.run(t, "tables")
		a := s.account(t)
		s.rails.run(t, "Account.connection.begin_transaction(joinable: false); @a.lock!")
		err := s.db.Transaction(func(tx *gorm.DB) error { return gormlock.LockRow(tx, &a, gormlock.Try()) })
		if !errors.Is(err, gormlock.ErrNotAcquired) {
			t.Error(err)
		}
		pid, done := make(chan int, 1), make(chan error, 1)
		go func() {
			done <- s.db.Transaction(func(tx *gorm.DB) error {
				var own int
				err := tx.Raw("SELECT pg_backend_pid()").Scan(&own).Error
				pid <- own
				if err != nil {
					return err
				}
				if err := gormlock.LockRow(tx, &a); err != nil {
					return err
				}
				return tx.Model(&a).Update("balance", a.Balance*2).Error
			})
		}()
		pgtest.WaitBackendBlocked(t, <-pid)
		s.rails.run(t, "@a.update!(balance: @a.balance + 1); Account.connection.commit_transaction")
		must(t, <-done)
		equal(t, "balance", s.row(t, a.ID).Balance, 202)
	})
	// Not in parallel: advisory locks are the database's, and these keys are nobody's own.
	for _, lock := range []struct {
		name   string
		key    func(t *testing.T, r *rails) lockkey.Key
		args   string // of the advisory lock function, in Ruby
		objsub uint16
	}{
		{
			"R29 K1 with_advisory_lock", func(*testing.T, *rails) lockkey.Key { return compat.WithAdvisoryLock("nightly report", "") },
			`with_advisory_lock_keys("nightly report", nil).join(",")`, 2,
		},
		{
			"R29 K1 with_advisory_lock, a number as prefix", func(*testing.T, *rails) lockkey.Key { return compat.WithAdvisoryLock("nightly report", " 4_2nd") },
			`with_advisory_lock_keys("nightly report", " 4_2nd").join(",")`, 2,
		},
		{
			"R29 K1 with_advisory_lock, a word as prefix", func(*testing.T, *rails) lockkey.Key { return compat.WithAdvisoryLock("été", "myapp_staging_") },
			`with_advisory_lock_keys("été", "myapp_staging_").join(",")`, 2,
		},
		{
			"R29 K2 GoodJob", func(*testing.T, *rails) lockkey.Key {
				return compat.GoodJob("good_jobs-3e7f8b7a-2c6f-4a5e-9d0e-0f1a2b3c4d5e")
			},
			`"('x' || substr(md5('good_jobs-3e7f8b7a-2c6f-4a5e-9d0e-0f1a2b3c4d5e'), 1, 16))::bit(64)::bigint"`, 1,
		},
		{
			"R29 K3 ActiveRecord's migrator", func(t *testing.T, r *rails) lockkey.Key {
				return compat.RailsMigrator(value[string](t, r, "sql('SELECT current_database()')"))
			},
			`ActiveRecord::Migrator.allocate.send(:generate_migrator_advisory_lock_id).to_s`, 1,
		},
	} {
		t.Run(lock.name, func(t *testing.T) {
			s := shared{db: open(t), rails: process.session(t, "main")}
			key := lock.key(t, s.rails)
			s.rails.run(t, `sql("SELECT pg_advisory_lock(#{`+lock.args+`})")`)
			held := pgtest.Locks(t, key)
			pid := int(s.rails.number(t, "sql('SELECT pg_backend_pid()')"))
			if !slices.ContainsFunc(held, func(l pgtest.Lock) bool { return l.PID == pid }) {
				t.Errorf("Rails' lock is not %s: %v", key, held)
			}
			equal(t, "objsubid", s.rails.number(t, fmt.Sprintf(`sql("SELECT objsubid FROM pg_locks WHERE locktype = 'advisory' AND pid = %d")`, pid)), int64(lock.objsub))
			err := s.db.Transaction(func(tx *gorm.DB) error {
				return gormlock.AcquireXactLock(tx, []lockkey.Key{key}, gormlock.Try())
			})
			if !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Error("Go beside Rails:", err)
			}
			s.rails.run(t, `sql("SELECT pg_advisory_unlock(#{`+lock.args+`})")`)
			must(t, s.db.Transaction(func(tx *gorm.DB) error {
				must(t, gormlock.AcquireXactLock(tx, []lockkey.Key{key}, gormlock.Try()))
				equal(t, "Rails beside Go", value[bool](t, s.rails, `sql("SELECT pg_try_advisory_lock(#{`+lock.args+`})")`), false)
				return nil
			}))
		})
	}
}
