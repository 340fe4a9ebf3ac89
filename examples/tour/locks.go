package main

import (
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
)

// Invoice is numbered without gaps, which no sequence can promise.
type Invoice struct {
	ID     int64
	Number int64
}

func create(s *stage) error {
	if err := s.db.AutoMigrate(&Invoice{}); err != nil {
		return err
	}
	s.say("Invoice numbers must have no gap, so the next one is the highest plus 1. There is no row to " +
		"lock yet: an advisory lock names what does not exist. GORM begins a transaction for a create; " +
		"the lock is taken in it.")
	s.code(`next := gorm.Expr("(SELECT coalesce(max(number), 0) + 1 FROM invoices)")
db.Model(&Invoice{}).Scopes(gormlock.WithXactLock(key)).Create(map[string]any{"number": next})`)
	next := gorm.Expr("(SELECT coalesce(max(number), 0) + 1 FROM invoices)")
	add := func(db *gorm.DB) error {
		return db.Model(&Invoice{}).Create(map[string]any{"number": next}).Error
	}

	first, second := s.db.Begin(), s.db.Begin()
	err := errors.Join(add(first), add(second), first.Commit().Error, second.Commit().Error)
	if err != nil {
		return err
	}
	var numbers []int64
	if err := s.db.Model(&Invoice{}).Pluck("number", &numbers).Error; err != nil {
		return err
	}
	s.check(len(numbers) == 2 && numbers[0] == numbers[1], "without the lock two creates at once both took number %d", numbers[0])
	if err := s.db.Exec("TRUNCATE invoices").Error; err != nil {
		return err
	}

	key := s.key("invoice numbers")
	locked := s.db.Scopes(gormlock.WithXactLock(key)).Session(&gorm.Session{})
	if err := s.waitsFor(key, func() error { return add(locked) }); err != nil {
		return err
	}
	const writers, each = 8, 5
	if err := together(writers, each, func() error { return add(locked) }); err != nil {
		return err
	}
	var count, different, highest int64
	row := s.db.Raw("SELECT count(*), count(DISTINCT number), max(number) FROM invoices").Row()
	if err := row.Scan(&count, &different, &highest); err != nil {
		return err
	}
	const all = writers*each + 1
	s.check(count == all && different == all && highest == all,
		"with it %d writers made %d more: the numbers are 1 to %d, no gap, none twice", writers, writers*each, highest)
	return nil
}

// waitsFor runs do while another session holds the key, and checks that it waits for it.
func (s *stage) waitsFor(key lockkey.Key, do func() error) error {
	release, err := s.hold(key)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	err = s.blocked()
	s.check(err == nil && len(done) == 0, "while another session holds the lock, the create waits for it inside of its transaction")
	return errors.Join(err, release(), <-done)
}

// Account is what the writers of several chapters meet at.
type Account struct {
	ID      int64
	Balance int64
}

// account is a new account with the balance.
func (s *stage) account(balance int64) (Account, error) {
	a := Account{Balance: balance}
	if err := s.db.AutoMigrate(&a); err != nil {
		return a, err
	}
	return a, s.db.Create(&a).Error
}

func lostUpdate(s *stage) error {
	s.say("8 goroutines add 1 to a balance 25 times each: they read it, add, and write it back. The only " +
		"difference between the two runs is the scope on the read:")
	s.code(`tx.Scopes(gormlock.WithXactLock(key)).First(&a, id)
tx.Model(&a).Update("balance", a.Balance+1)`)
	const writers, each = 8, 25
	run := func(scopes ...func(*gorm.DB) *gorm.DB) (balance int64, err error) {
		a, err := s.account(0)
		if err != nil {
			return 0, err
		}
		err = together(writers, each, func() error {
			return s.db.Transaction(func(tx *gorm.DB) error {
				var mine Account
				if err := tx.Scopes(scopes...).First(&mine, a.ID).Error; err != nil {
					return err
				}
				return tx.Model(&mine).Update("balance", mine.Balance+1).Error
			})
		})
		err = errors.Join(err, s.db.First(&a, a.ID).Error)
		return a.Balance, err
	}
	// Two writers may by chance never meet: then they get another go.
	unlocked, err := run()
	for again := 0; err == nil && unlocked == writers*each && again < 20; again++ {
		unlocked, err = run()
	}
	if err != nil {
		return err
	}
	s.check(unlocked < writers*each, "without the lock, no error anywhere: %d additions, the balance is %d, %d are lost",
		writers*each, unlocked, writers*each-unlocked)
	locked, err := run(gormlock.WithXactLock(s.key("account")))
	if err != nil {
		return err
	}
	s.check(locked == writers*each, "with it: %d additions, the balance is %d", writers*each, locked)
	return nil
}

func waiting(s *stage) error {
	key := s.key("report")
	a, err := s.account(0)
	if err != nil {
		return err
	}
	release, err := s.hold(key)
	if err != nil {
		return err
	}
	s.say("Another session holds the lock. In one transaction:")
	s.code(`tx.Scopes(gormlock.WithXactLock(key, gormlock.Try())).First(&a)
tx.Scopes(gormlock.WithXactLock(key, gormlock.Timeout(150*time.Millisecond))).First(&a)
gorm.G[Account](tx, gormlock.XactLock(key, gormlock.Try())).First(ctx) // GORM's generics take it as a clause
tx.Model(&a).Update("balance", 7) // the transaction is as good as before`)
	err = s.db.Transaction(func(tx *gorm.DB) error {
		began := time.Now()
		err := tx.Scopes(gormlock.WithXactLock(key, gormlock.Try())).First(&a).Error
		s.check(errors.Is(err, gormlock.ErrNotAcquired), "Try, after %s: %v", since(began), err)
		began = time.Now()
		err = tx.Scopes(gormlock.WithXactLock(key, gormlock.Timeout(150*time.Millisecond))).First(&a).Error
		s.check(errors.Is(err, gormlock.ErrLockTimeout) && time.Since(began) >= 150*time.Millisecond, "Timeout, after %s: %v", since(began), err)
		_, err = gorm.G[Account](tx, gormlock.XactLock(key, gormlock.Try())).First(s.ctx)
		s.check(errors.Is(err, gormlock.ErrNotAcquired), "as a clause: %v", err)
		return tx.Model(&a).Update("balance", 7).Error
	})
	if err := errors.Join(err, s.db.First(&a).Error); err != nil {
		return errors.Join(err, release())
	}
	s.check(a.Balance == 7, "the update after all refusals was committed: the balance is %d", a.Balance)
	return errors.Join(s.bounded(key), release())
}

// bounded asks for a lock that is held, and names no bound.
func (s *stage) bounded(key lockkey.Key) error {
	s.code(`db.Use(gormlock.New(gormlock.DefaultTimeout(50*time.Millisecond))) // for every wait that names no bound`)
	db, done, err := s.another(s.config, gormlock.DefaultTimeout(50*time.Millisecond))
	if err != nil {
		return err
	}
	err = db.Scopes(gormlock.WithXactLock(key)).Create(&Account{}).Error
	s.check(errors.Is(err, gormlock.ErrLockTimeout), "a create with no bound of its own: %v", err)
	return done()
}

func shared(s *stage) error {
	s.say("A price list is read by many and changed by one:")
	s.code(`gormlock.AcquireXactLock(tx, []lockkey.Key{key}, gormlock.Shared()) // readers
gormlock.AcquireXactLock(tx, []lockkey.Key{key})                    // the writer`)
	key := s.key("price list")
	one, two := s.db.Begin(), s.db.Begin()
	err := errors.Join(
		gormlock.AcquireXactLock(one, []lockkey.Key{key}, gormlock.Shared(), gormlock.Try()),
		gormlock.AcquireXactLock(two, []lockkey.Key{key}, gormlock.Shared(), gormlock.Try()))
	s.check(err == nil, "two readers hold it together")
	err = s.db.Transaction(try(key))
	s.check(errors.Is(err, gormlock.ErrNotAcquired), "the writer does not get it: %v", err)
	if err := errors.Join(one.Commit().Error, two.Commit().Error); err != nil {
		return err
	}
	err = s.db.Transaction(try(key))
	s.check(err == nil, "when their transactions have ended, it does")
	return nil
}

// try takes the lock in a transaction, or says that somebody else has it.
func try(key lockkey.Key) func(tx *gorm.DB) error {
	return func(tx *gorm.DB) error {
		return gormlock.AcquireXactLock(tx, []lockkey.Key{key}, gormlock.Try())
	}
}

func since(began time.Time) time.Duration { return time.Since(began).Round(time.Millisecond / 10) }
