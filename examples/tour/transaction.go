package main

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lockkey"
)

func roundTrips(s *stage) error {
	a, err := s.account(0)
	if err != nil {
		return err
	}
	db, proxy, done, err := s.tapped()
	switch {
	case err != nil && s.server == nil:
		s.say("Not shown here: the proxy that counts needs TCP without encryption, and the server you gave has none: %v", err)
		return nil
	case err != nil:
		return err
	}
	s.say("A proxy between GORM and the server counts. A lock on a transaction that begins now travels " +
		"with its BEGIN; in one that is open already, any number of locks is one round trip more.")
	count := func(do func() error) (n int) {
		// The first run prepares statements.
		for range 2 {
			proxy.Reset()
			err = errors.Join(err, do())
			n = proxy.RoundTrips()
		}
		return n
	}
	key, other := s.key("account", a.ID), s.key("account", a.ID+1)
	add := func(db *gorm.DB) func() error {
		return func() error { return db.Create(&Account{}).Error }
	}
	read := func(tx *gorm.DB) error { return tx.First(&Account{}, a.ID).Error }

	plain, locked := count(add(db)), count(add(db.Scopes(gormlock.WithXactLock(key)).Session(&gorm.Session{})))
	s.code(`db.Scopes(gormlock.WithXactLock(key)).Create(&account)`)
	s.check(plain == locked, "a create: %d round trips, with a lock %d. What was sent:", plain, locked)
	for _, statement := range proxy.Statements() {
		s.code("  " + brief(statement))
	}
	plain = count(func() error { return db.Transaction(read) })
	locked = count(func() error {
		return gormlock.Transaction(db, read, gormlock.Locking(key, gormlock.Timeout(time.Second)), gormlock.Locking(other))
	})
	s.code(`gormlock.Transaction(db, read, gormlock.Locking(key, gormlock.Timeout(time.Second)), gormlock.Locking(other))`)
	s.check(plain == locked, "a transaction that reads once: %d round trips, with two locks and a timeout %d", plain, locked)
	hundred := make([]lockkey.Key, 100)
	for i := range hundred {
		hundred[i] = s.key("line", i)
	}
	locked = count(func() error {
		return db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(read(tx), gormlock.AcquireXactLock(tx, hundred, gormlock.Timeout(time.Second)))
		})
	})
	s.code(`gormlock.AcquireXactLock(tx, hundredKeys, gormlock.Timeout(time.Second))`)
	s.check(locked == plain+1, "100 locks in the middle of it: %d round trips", locked)
	return errors.Join(err, done())
}

// brief is a statement without what repeats itself.
func brief(statement string) string {
	if at := strings.Index(statement, "CASE WHEN"); at >= 0 {
		if to := strings.Index(statement, "pg_advisory"); to > at {
			statement = statement[:at] + "… " + statement[to:]
		}
	}
	return statement
}

// tapped opens GORM with gormlock on one connection through a proxy that counts.
func (s *stage) tapped() (db *gorm.DB, proxy *wiretap.Proxy, done func() error, err error) {
	proxy, err = wiretap.Listen(net.JoinHostPort(s.config.Host, strconv.Itoa(int(s.config.Port))))
	if err != nil {
		return nil, nil, nil, err
	}
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		return nil, nil, nil, errors.Join(err, proxy.Close())
	}
	config := s.config.Copy()
	number, _ := strconv.ParseUint(port, 10, 16)
	config.Host, config.Port, config.TLSConfig, config.Fallbacks = host, uint16(number), nil, nil
	db, closed, err := s.another(config)
	if err != nil {
		return nil, nil, nil, errors.Join(err, proxy.Close())
	}
	done = func() error { return errors.Join(closed(), proxy.Close()) }
	pool, err := db.DB()
	if err != nil {
		return nil, nil, nil, errors.Join(err, done())
	}
	pool.SetMaxOpenConns(1)
	return db, proxy, done, nil
}

func snapshot(s *stage) error {
	s.say("At REPEATABLE READ all reads see one moment, that of the first statement. If that statement is " +
		"the one that waits for the lock, the moment is before the wait. Here a rival holds the lock, " +
		"sets a balance from 1 to 2, and lets go, while a transaction waits and then reads:")
	key := s.key("balance")
	repeatable := &sql.TxOptions{Isolation: sql.LevelRepeatableRead}
	// behind reads the balance behind the rival.
	behind := func(read func(*Account) error) (int64, error) {
		a, err := s.account(1)
		if err != nil {
			return 0, err
		}
		release, err := s.hold(key)
		if err != nil {
			return 0, err
		}
		mine := Account{ID: a.ID}
		done := make(chan error, 1)
		go func() { done <- read(&mine) }()
		err = s.blocked()
		_, failed := s.outside.ExecContext(s.ctx, "update accounts set balance = 2 where id = $1", a.ID)
		err = errors.Join(err, failed, release(), <-done)
		return mine.Balance, err
	}

	stale, err := behind(func(a *Account) error {
		return s.db.Transaction(func(tx *gorm.DB) error {
			return tx.Scopes(gormlock.WithXactLock(key, gormlock.AllowSnapshot())).First(a).Error
		}, repeatable)
	})
	if err != nil {
		return err
	}
	s.check(stale == 1, "a lock as the first statement, forced with AllowSnapshot: it is held, and reads the old balance %d", stale)
	err = s.db.Transaction(func(tx *gorm.DB) error {
		return tx.Scopes(gormlock.WithXactLock(key)).First(&Account{}).Error
	}, repeatable)
	s.check(errors.Is(err, gormlock.ErrSnapshotTaken), "without AllowSnapshot that is refused: %v", err)
	s.code(`gormlock.Transaction(db, read, gormlock.Isolation(sql.LevelRepeatableRead), gormlock.Locking(key))`)
	fresh, err := behind(func(a *Account) error {
		return gormlock.Transaction(s.db, func(tx *gorm.DB) error { return tx.First(a).Error },
			gormlock.Isolation(sql.LevelRepeatableRead), gormlock.Locking(key))
	})
	if err != nil {
		return err
	}
	s.check(fresh == 2, "Transaction holds the lock before the snapshot is taken, and reads %d", fresh)
	return nil
}

func retries(s *stage) error {
	a, err := s.account(0)
	if err != nil {
		return err
	}
	s.say("Two transactions at SERIALIZABLE read a balance of 0 at the same moment, and both add 1. The " +
		"server lets one of them commit and ends the other with 40001; running that one again, from its " +
		"read on, is the cure:")
	s.code(`gormlock.Transaction(db, addOne, gormlock.Isolation(sql.LevelSerializable), gormlock.Attempts(20))`)
	meet := rendezvous(s.ctx, 2)
	var runs, again atomic.Int32
	var why atomic.Value
	err = together(2, 1, func() error {
		return gormlock.Transaction(s.db, func(tx *gorm.DB) error {
			var mine Account
			if err := tx.First(&mine, a.ID).Error; err != nil {
				return err
			}
			if runs.Add(1) <= 2 {
				if err := meet(); err != nil {
					return err
				}
			}
			return tx.Model(&mine).Update("balance", mine.Balance+1).Error
		}, gormlock.Isolation(sql.LevelSerializable), gormlock.Attempts(20), gormlock.OnRetry(func(_ int, err error) {
			again.Add(1)
			why.Store(err.Error())
		}))
	})
	if err := errors.Join(err, s.db.First(&a).Error); err != nil {
		return err
	}
	s.check(again.Load() > 0, "the loser ran again after: %v", why.Load())
	s.check(a.Balance == 2, "both additions are there: the balance is %d", a.Balance)

	attempts := 0
	err = gormlock.Transaction(s.db, func(*gorm.DB) error {
		attempts++
		return context.Canceled
	}, gormlock.Attempts(20))
	s.check(attempts == 1 && errors.Is(err, context.Canceled) && !gormlock.IsRetryable(err), "an error that another run cannot cure, which gormlock.IsRetryable knows, is not repeated: %d run, %v", attempts, err)
	return nil
}
