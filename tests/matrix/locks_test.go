package matrix_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/pgxlock"
	"github.com/gormlock/gormlock/sessionlock"
	"github.com/gormlock/gormlock/work"
)

const simple = pgx.QueryExecModeSimpleProtocol

// errNoDoor is for a server that pgx does not speak to: there is nothing to give to package pgxlock.
var errNoDoor = errors.New("no connection of pgx")

type letter struct {
	work.Job
	To string
}

// locks are the features that lock keys, and those that stand on them.
func locks() []feature {
	return []feature{
		{"WithXactLock", func(ctx context.Context, p *place) error {
			key := gormlock.Key("scope")
			take := func(tx *gorm.DB, opts ...gormlock.LockOption) error {
				return tx.Scopes(gormlock.WithXactLock(key, opts...)).Model(&ticket{}).Where("id = 0").Update("state", "").Error
			}
			return excludes(ctx, p, key, take)
		}},
		{"Transaction with Locking", func(ctx context.Context, p *place) error {
			key, db := gormlock.Key("transaction"), p.db.WithContext(ctx)
			return gormlock.Transaction(db, func(*gorm.DB) error {
				err := gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(key, gormlock.Try()))
				return isExcluded(err)
			}, gormlock.Locking(key))
		}},
		{"AcquireXactLock", func(ctx context.Context, p *place) error {
			key := gormlock.Key("acquire")
			return excludes(ctx, p, key, func(tx *gorm.DB, opts ...gormlock.LockOption) error {
				return gormlock.AcquireXactLock(tx, []lockkey.Key{key}, opts...)
			})
		}},
		{"advisory.Acquire", acquired},
		{"advisory.SessionLocker", func(ctx context.Context, p *place) error { return sessionLocked(ctx, p) }},
		{"pgxlock", pgxLocked},
		{"Once", onlyOnce},
		{"sessionlock", func(ctx context.Context, p *place) error { return sessions(ctx, p) }},
		{"sessionlock, AllowPooler", func(ctx context.Context, p *place) error { return sessions(ctx, p, sessionlock.AllowPooler()) }},
		{"lease", leased},
		{"work", worked},
	}
}

func isExcluded(err error) error {
	if !errors.Is(err, gormlock.ErrNotAcquired) {
		return broken(fmt.Sprintf("beside a holder: %v", err))
	}
	return nil
}

// excludes asserts that a lock of one transaction is refused to another one, and free after it.
func excludes(ctx context.Context, p *place, key lockkey.Key, take func(tx *gorm.DB, opts ...gormlock.LockOption) error) error {
	db := p.db.WithContext(ctx)
	if err := apart(db, func(tx *gorm.DB) error { return take(tx) }, func(tx *gorm.DB) error { return isExcluded(take(tx, gormlock.Try())) }); err != nil {
		return err
	}
	if err := db.Transaction(func(tx *gorm.DB) error { return take(tx, gormlock.Try()) }); err != nil {
		return broken(fmt.Sprintf("%s after its holder: %v", key, err))
	}
	return nil
}

func acquired(ctx context.Context, p *place) error {
	keys := []lockkey.Key{gormlock.Key("advisory")}
	holder, err := p.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = holder.Rollback() }()
	if err := advisory.Acquire(ctx, holder, keys); err != nil {
		return err
	}
	rival, err := p.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = rival.Rollback() }()
	return isExcluded(advisory.Acquire(ctx, rival, keys, advisory.Try()))
}

// sessionLocked is what a migration tool does: lock, migrate, unlock, on one connection.
func sessionLocked(ctx context.Context, p *place, opts ...advisory.Option) error {
	locker := advisory.SessionLocker(gormlock.Key("locker"), opts...)
	holder, err := p.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = holder.Close() }()
	if err := locker.SessionLock(ctx, holder); err != nil {
		return err
	}
	rival, err := p.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = rival.Close() }()
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	besideIt := isExcluded(locker.SessionLock(soon, rival))
	return errors.Join(besideIt, locker.SessionUnlock(ctx, holder))
}

func pgxLocked(ctx context.Context, p *place) error {
	if p.pgx == nil {
		return errNoDoor
	}
	key := gormlock.Key("pgx")
	return pgxlock.Transaction(ctx, p.pgx, func(pgx.Tx) error {
		return isExcluded(pgxlock.Transaction(ctx, p.pgx, func(tx pgx.Tx) error {
			return pgxlock.Acquire(ctx, tx, []lockkey.Key{key}, advisory.Try())
		}))
	}, pgxlock.Locking(key))
}

func onlyOnce(ctx context.Context, p *place) error {
	runs := 0
	for range 2 {
		err := p.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			got, err := gormlock.Once(tx, "matrix", func(*gorm.DB) (int, error) { runs++; return 42, nil })
			if err == nil && got != 42 {
				return broken(fmt.Sprintf("the result is %d", got))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if runs != 1 {
		return broken(fmt.Sprintf("ran %d times", runs))
	}
	return nil
}

// sessions asserts that a lock of one manager is refused to another one, and free after it.
func sessions(ctx context.Context, p *place, opts ...sessionlock.Option) error {
	holder, err := sessionlock.Open(ctx, p.dsn, opts...)
	if err != nil {
		return err
	}
	defer func() { _ = holder.Close(ctx) }()
	rival, err := sessionlock.Open(ctx, p.dsn, opts...)
	if err != nil {
		return err
	}
	defer func() { _ = rival.Close(ctx) }()
	key := gormlock.Key("session")
	lock, err := holder.Acquire(ctx, key)
	if err != nil {
		return err
	}
	if _, err := rival.Acquire(ctx, key, sessionlock.Try()); !errors.Is(err, sessionlock.ErrNotAcquired) {
		return broken(fmt.Sprintf("beside a holder: %v", err))
	}
	if err := lock.Release(ctx); err != nil {
		return err
	}
	if _, err := rival.Acquire(ctx, key, sessionlock.Try()); err != nil {
		return broken(fmt.Sprintf("after its holder: %v", err))
	}
	return nil
}

func leased(ctx context.Context, p *place) error {
	holder, err := lease.New(ctx, p.pool)
	if err != nil {
		return err
	}
	defer func() { _ = holder.Close(ctx) }()
	rival, err := lease.New(ctx, p.pool)
	if err != nil {
		return err
	}
	defer func() { _ = rival.Close(ctx) }()
	key := gormlock.Key("lease")
	held, err := holder.Acquire(ctx, key, time.Minute)
	if err != nil {
		return err
	}
	if _, err := rival.TryAcquire(ctx, key, time.Minute); !errors.Is(err, lease.ErrNotAcquired) {
		return broken(fmt.Sprintf("beside a holder: %v", err))
	}
	if err := held.Release(ctx); err != nil {
		return err
	}
	if _, err := rival.TryAcquire(ctx, key, time.Minute); err != nil {
		return broken(fmt.Sprintf("after its holder: %v", err))
	}
	return nil
}

func worked(ctx context.Context, p *place) error {
	db, ran := p.db.WithContext(ctx), 0
	if err := work.Migrate(db, &letter{}); err != nil {
		return err
	}
	if err := work.Enqueue(db, &letter{To: "Ann"}); err != nil {
		return err
	}
	worker, err := work.New(p.db, func(context.Context, *letter) error { ran++; return nil })
	if err != nil {
		return err
	}
	done := 0
	for done == 0 && ctx.Err() == nil { // a standby that is asked what is ready may not know of the job yet
		n, err := worker.Drain(ctx)
		if err != nil {
			return err
		}
		done += n
	}
	if done != 1 || ran != 1 {
		return broken(fmt.Sprintf("done %d, ran %d", done, ran))
	}
	return nil
}
