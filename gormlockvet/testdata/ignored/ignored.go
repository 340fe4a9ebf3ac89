package ignored

import (
	"context"
	"errors"
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
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Report struct {
	ID    int64
	Fence int64 `gormlock:"fence,key=report"`
}

type Plain struct{ ID int64 }

// Versioned is embedded by models.
type Versioned struct {
	ID      int64
	Version int64 `gormlock:"version"`
}

type Order struct {
	Versioned
	State string
}

var key = gormlock.Key("account", 1)

func statements(ctx context.Context, db, tx *gorm.DB) {
	var a Account
	tx.Scopes(gormlock.WithXactLock(key)).First(&Plain{})                      // want `ignored: nobody looks at the Error of First, which alone says whether the lock was got`
	tx.Clauses(gormlock.RowLock(gormlock.ForUpdate)).Find(&[]Plain{})          // want `nobody looks at the Error of Find`
	db.Save(&a)                                                                // want `nobody looks at the Error of Save: a write of Account may be refused`
	db.Model(&a).Update("balance", 1)                                          // want `Error of Update`
	db.Model(&Account{}).Where("id = 1").Updates(map[string]any{"balance": 1}) // want `Error of Updates`
	db.Delete(&a)                                                              // want `Error of Delete`
	db.Create(&[]Report{{}})                                                   // want `a write of Report may be refused`
	db.Save(&Order{})                                                          // want `a write of Order`
	go db.Save(&a)                                                             // want `Error of Save`
	defer db.Save(&a)                                                          // want `Error of Save`
	_ = db.Save(&a).Error                                                      // want `Error of Save`

	db.Session(&gorm.Session{DryRun: true}).Save(&a)
	db.Session(&gorm.Session{DryRun: false}).Save(&a) // want `Error of Save`

	if res := db.Save(&a); res.RowsAffected == 0 { // want `Error of Save`
		return
	}
	_, _ = gorm.G[Account](db).Where("id = 1").Update(ctx, "balance", 1) // want `Error of Update`
	_ = gorm.G[Account](db).Create(ctx, &a)                              // want `Error of Create`
	_, _ = gorm.G[Plain](db, gormlock.XactLock(key)).First(ctx)          // want `Error of First, which alone says whether the lock was got`
}

func calls(ctx context.Context, db, tx *gorm.DB, m *sessionlock.Manager, leases *lease.Manager) {
	gormlock.AcquireXactLock(tx, []lockkey.Key{key})                                // want `nobody looks at the error of gormlock.AcquireXactLock`
	gormlock.LockRow(tx, &Account{})                                                // want `gormlock.LockRow`
	gormlock.Touch(tx, &Account{})                                                  // want `gormlock.Touch`
	jobs, _ := gormlock.Claim[Plain](db, 10, map[string]any{})                      // want `gormlock.Claim`
	n, _ := gormlock.Once(tx, "a", func(*gorm.DB) (int64, error) { return 1, nil }) // want `gormlock.Once`
	gormlock.Transaction(db, func(*gorm.DB) error { return nil })                   // want `gormlock.Transaction`
	_, _ = jobs, n

	l, _ := m.Acquire(ctx, key)                                                     // want `nobody looks at the error of sessionlock.Manager.Acquire`
	l.Release(ctx)                                                                  // want `sessionlock.Lock.Release: it says whether the lock was lost before`
	m.Do(ctx, key, func(context.Context) error { return nil })                      // want `sessionlock.Manager.Do`
	go leases.Do(ctx, key, time.Minute, func(context.Context) error { return nil }) // want `lease.Manager.Do`

	err := m.Do(ctx, key, func(context.Context) error { return nil }) // want `sessionlock.Manager.Do`
	err = errors.New("another")
	_ = err
}

func innocent(ctx context.Context, db, tx *gorm.DB, m *sessionlock.Manager, leases *lease.Manager) (err error) {
	var a Account
	// A model without tags, and without a lock, is GORM's own affair.
	db.Save(&Plain{})
	db.First(&a)
	// Looked at, here or by somebody else.
	if err := db.Save(&a).Error; err != nil {
		return err
	}
	res := db.Model(&a).Update("balance", 1)
	if res.Error != nil || res.RowsAffected == 0 {
		return res.Error
	}
	check(db.Save(&a))
	all := []*gorm.DB{db.Save(&a)}
	_ = all
	defer func() { err = errors.Join(err, db.Save(&a).Error) }()
	// A chain keeps the error of what ran on it.
	q := db.Where("id = 1")
	q.Delete(&a)
	if q.Error != nil {
		return q.Error
	}
	l, err := m.Acquire(ctx, key)
	if err != nil {
		return err
	}
	// A release may drop its error where it is deferred, or by name.
	defer l.Release(context.WithoutCancel(ctx))
	defer func() { l.Release(context.WithoutCancel(ctx)) }()
	_ = l.Release(ctx)
	if _, err := gormlock.Claim[Plain](db, 10, map[string]any{}); err != nil {
		return err
	}
	err = leases.Do(ctx, key, time.Minute, func(context.Context) error { return nil })
	return err
}

func check(db *gorm.DB) {
	if db.Error != nil {
		panic(db.Error)
	}
}
