package locks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// takeOpen takes the lock in an open transaction and returns the kinds of the texts that were sent for it. The transaction goes on
// after it, with the lock_timeout of before, and a savepoint around it gives the lock back.
func (s oneSession) takeOpen(t *testing.T, key lockkey.Key, want error, opts ...gormlock.LockOption) (kinds []string) {
	t.Helper()
	errBack := errors.New("back to the savepoint")
	err := s.db.Transaction(func(tx *gorm.DB) error {
		err := tx.Transaction(func(nested *gorm.DB) error {
			s.proxy.Reset()
			err := gormlock.AcquireXactLock(nested, []lockkey.Key{key}, opts...)
			for _, text := range s.proxy.Statements() {
				kinds = append(kinds, openKindOf(text))
			}
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			if held := pgtest.Held(t, key); err == nil && !held {
				t.Error("the lock is not held")
			}
			if err := nested.Exec("SELECT 1 / (current_setting('lock_timeout') = '0')::int").Error; err != nil {
				t.Error(err)
			}
			return errBack
		})
		if !errors.Is(err, errBack) {
			t.Error(err)
		}
		if want == nil {
			pgtest.AssertFree(t, key)
		}
		return tx.Exec("SELECT 1").Error
	})
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

func openKindOf(text string) string {
	switch kind := kindOf(text); {
	case kind != text:
		return kind
	case strings.HasPrefix(text, "SAVEPOINT gormlock; ") && strings.Contains(text, "advisory_xact_lock"):
		return "plain"
	case strings.HasPrefix(text, "ROLLBACK TO SAVEPOINT gormlock;"):
		return "back"
	default:
		return text
	}
}

// TestPrepared_open: a lock in an open transaction is prepared as one that begins it is, in the one message with its savepoint.
func TestPrepared_open(t *testing.T) {
	t.Parallel()
	for name, opts := range forms(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newOneSession(t, pgtest.DSN(t))
			wantKinds(t, s.takeOpen(t, pgtest.Key(t, "first"), nil), "asked")
			for _, key := range []lockkey.Key{pgtest.Key(t), pgtest.PairKey(t)} {
				wantKinds(t, s.takeOpen(t, key, nil, opts...), "prepared")
				for range 7 {
					wantKinds(t, s.takeOpen(t, key, nil, opts...), "executed")
				}
			}
		})
	}
}

// TestPrepared_openRefused: a refusal leaves the transaction as it was, whether the statement is defined with it or only executed.
func TestPrepared_openRefused(t *testing.T) {
	t.Parallel()
	s := newOneSession(t, pgtest.DSN(t))
	key := pgtest.Key(t)
	wantKinds(t, s.takeOpen(t, key, nil), "asked")
	release := rivalHolds(t, exclusively, key)
	wantKinds(t, s.takeOpen(t, key, gormlock.ErrLockTimeout, gormlock.Timeout(time.Millisecond)), "prepared", "back")
	wantKinds(t, s.takeOpen(t, key, gormlock.ErrLockTimeout, gormlock.Timeout(time.Millisecond)), "executed", "back")
	wantKinds(t, s.takeOpen(t, key, gormlock.ErrNotAcquired, gormlock.Try()), "prepared")
	wantKinds(t, s.takeOpen(t, key, gormlock.ErrNotAcquired, gormlock.Try()), "executed")
	release()
	wantKinds(t, s.takeOpen(t, key, nil, gormlock.Try()), "executed")
	if err := s.db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Exec("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").Error; err != nil {
			return err
		}
		return gormlock.AcquireXactLock(tx, []lockkey.Key{key})
	}); !errors.Is(err, gormlock.ErrSnapshotTaken) {
		t.Error(err)
	}
	if err := s.db.Transaction(func(tx *gorm.DB) error { // aborted: nothing of the text is executed, and nothing is defined
		_ = tx.Exec("SELECT 1/0").Error
		return gormlock.AcquireXactLock(tx, []lockkey.Key{key}, gormlock.Shared())
	}); err == nil {
		t.Error("a lock in an aborted transaction")
	}
	wantKinds(t, s.takeOpen(t, key, nil, gormlock.Shared()), "prepared")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	free := rivalHolds(t, exclusively, key)
	defer free()
	if err := s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		return gormlock.AcquireXactLock(tx, []lockkey.Key{key})
	}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestPrepared_openLost: what a session has lost is noticed under the savepoint, and the lock is held all the same.
func TestPrepared_openLost(t *testing.T) {
	t.Parallel()
	s := newOneSession(t, pgtest.DSN(t))
	key := pgtest.Key(t)
	for range 2 {
		wantKinds(t, s.takeOpen(t, key, nil), "asked")
		wantKinds(t, s.takeOpen(t, key, nil), "prepared")
		if err := s.db.Exec("DEALLOCATE ALL").Error; err != nil {
			t.Fatal(err)
		}
		wantKinds(t, s.takeOpen(t, key, nil), "executed", "back", "plain")
	}
	wantKinds(t, s.takeOpen(t, key, nil), "asked")
	wantKinds(t, s.takeOpen(t, key, nil), "prepared")
	if err := s.db.Exec("DEALLOCATE ALL").Error; err != nil {
		t.Fatal(err)
	}
	wantKinds(t, s.takeOpen(t, key, nil), "executed", "back", "plain")
	wantKinds(t, s.takeOpen(t, key, nil), "plain")
}

// TestPrepared_openPlain: behind a pooler nothing is prepared.
func TestPrepared_openPlain(t *testing.T) {
	t.Parallel()
	s := newOneSession(t, pgtest.StartPgBouncer(t, pgtest.DSN(t), "pool_mode = transaction", "default_pool_size = 2").DSN())
	key := pgtest.Key(t)
	wantKinds(t, s.takeOpen(t, key, nil), "asked")
	wantKinds(t, s.takeOpen(t, key, nil), "plain")
	wantKinds(t, s.takeOpen(t, key, nil, gormlock.Try()), "plain")
}
