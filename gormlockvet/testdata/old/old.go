package old

import (
	"context"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
	"gorm.io/gorm"
)

type Account struct {
	ID      int64
	Balance int64
	Seen    time.Time
}

func (a *Account) withdraw(amount int64) { a.Balance -= amount }

type Document struct {
	ID      int64
	Text    string
	Version int64 `gormlock:"version"`
}

var key = gormlock.Key("account", 1)

func transaction(db *gorm.DB, id, amount int64) error {
	var a Account
	if err := db.First(&a, id).Error; err != nil {
		return err
	}
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		a.Balance -= amount
		return tx.Save(&a).Error // want `old: a was read on line \d+, before the lock: what others wrote until then is overwritten`
	}, gormlock.Locking(key))
}

func computed(db *gorm.DB, id, amount int64) error {
	var a Account
	db.First(&a, id)
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		left := a.Balance - amount
		if err := tx.Model(&a).Update("balance", left).Error; err != nil { // want `a was read on line \d+, before the lock`
			return err
		}
		if err := tx.Model(&Account{}).Where("id = ?", id).Updates(map[string]any{"balance": a.Balance - amount}).Error; err != nil { // want `a was read`
			return err
		}
		return tx.Model(&a).Update("seen", time.Now()).Error // nothing of what was read
	}, gormlock.Locking(key))
}

func versioned(db *gorm.DB, id int64) error {
	var d Document
	db.First(&d, id)
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		return tx.Save(&d).Error // want `d was read on line \d+, before the lock: what others wrote until then is a stale version`
	}, gormlock.Locking(key))
}

func acquired(db *gorm.DB, id int64) error {
	return db.Transaction(func(tx *gorm.DB) error {
		var a Account
		tx.First(&a, id)
		if err := gormlock.AcquireXactLock(tx, []lockkey.Key{key}); err != nil {
			return err
		}
		a.withdraw(10)
		return tx.Save(&a).Error // want `a was read`
	})
}

func ownLock(db *gorm.DB, id int64) error {
	var a Account
	db.First(&a, id)
	a.Balance++
	return db.Scopes(gormlock.WithXactLock(key)).Save(&a).Error // want `a was read`
}

func held(ctx context.Context, db *gorm.DB, m *sessionlock.Manager, leases *lease.Manager, id int64) error {
	a, err := load(db, id)
	if err != nil {
		return err
	}
	l, err := m.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer l.Release(ctx)
	a.Balance++
	if err := save(db, a); err != nil { // want `the Account was read`
		return err
	}
	b, err := gorm.G[Account](db).First(ctx)
	if err != nil {
		return err
	}
	_ = b
	var c Account
	db.Take(&c)
	return leases.Do(ctx, key, time.Minute, func(ctx context.Context) error {
		return db.WithContext(ctx).Save(&c).Error
	})
}

func underLease(ctx context.Context, db *gorm.DB, leases *lease.Manager) error {
	c, err := gorm.G[Account](db).First(ctx)
	if err != nil {
		return err
	}
	return leases.Do(ctx, key, time.Minute, func(ctx context.Context) error {
		c.Balance++
		return db.WithContext(ctx).Save(&c).Error // want `c was read`
	})
}

func load(db *gorm.DB, id int64) (*Account, error) {
	var a Account
	err := db.First(&a, id).Error
	return &a, err
}

func save(db *gorm.DB, a *Account) error { return db.Save(a).Error }

func other(db *gorm.DB, id int64) error {
	var a Account
	db.First(&a, id)
	return db.Transaction(func(tx *gorm.DB) error {
		var locked Account
		tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).First(&locked, id)
		a.Balance++
		return tx.Save(&a).Error // want `a was read`
	})
}

func innocent(ctx context.Context, db *gorm.DB, m *sessionlock.Manager, id int64) error {
	var a, b, c, d Account
	// Read under the lock.
	err := gormlock.Transaction(db, func(tx *gorm.DB) error {
		if err := tx.First(&a, id).Error; err != nil {
			return err
		}
		a.Balance++
		return tx.Save(&a).Error
	}, gormlock.Locking(key))
	// Read again under the lock.
	db.First(&b, id)
	err = gormlock.Transaction(db, func(tx *gorm.DB) error {
		if err := gormlock.LockRow(tx, &b); err != nil {
			return err
		}
		b.Balance++
		return tx.Save(&b).Error
	}, gormlock.Locking(key))
	// Compared.
	db.First(&c, id)
	before := c
	c.Balance++
	err = gormlock.Transaction(db, func(tx *gorm.DB) error {
		return tx.Clauses(gormlock.IfUnchanged(&before, "balance")).Save(&c).Error
	}, gormlock.Locking(key))
	// Made here.
	d = Account{ID: 1}
	err = gormlock.Transaction(db, func(tx *gorm.DB) error { return tx.Save(&d).Error }, gormlock.Locking(key))
	// No lock.
	var e Account
	db.First(&e, id)
	err = db.Transaction(func(tx *gorm.DB) error { return tx.Save(&e).Error })
	// The row itself is locked.
	err = db.Transaction(func(tx *gorm.DB) error {
		var f Account
		tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).First(&f, id)
		if err := gormlock.AcquireXactLock(tx, []lockkey.Key{key}); err != nil {
			return err
		}
		return tx.Save(&f).Error
	})
	// The lock is gone.
	var g Account
	db.First(&g, id)
	l, err := m.Acquire(ctx, key)
	if err != nil {
		return err
	}
	if err := l.Release(ctx); err != nil {
		return err
	}
	err = db.Save(&g).Error
	// A function that may read it again.
	var h Account
	db.First(&h, id)
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		if err := reload(tx, &h); err != nil {
			return err
		}
		return tx.Save(&h).Error
	}, gormlock.Locking(key))
}

func reload(tx *gorm.DB, a *Account) error { return tx.First(a).Error }
