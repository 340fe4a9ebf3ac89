package main

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/examples/internal/place"
	"github.com/gormlock/gormlock/examples/internal/tally"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// Account is the entity's table. The tag says whose rules its version follows.
type Account struct {
	ID      int64
	Balance int64
	Version int64 `gorm:"not null;default:0" gormlock:"version,hibernate"`
}

// Order is the root of its lines: adding one moves its version.
type Order struct {
	ID      int64
	Version int64 `gorm:"not null;default:0" gormlock:"version,hibernate"`
	Lines   []Line
}

// Line is a part of an order.
type Line struct {
	ID      int64
	OrderID int64
	Amount  int64
}

// Run is a run of the nightly job.
type Run struct{ Night, DoneBy string }

// bank is the Go side.
type bank struct {
	db     *gorm.DB
	leases *lease.Manager
}

func newBank(ctx context.Context, p *place.Place) (*bank, error) {
	if err := lease.Migrate(ctx, p.Pool, lease.ShedLock()); err != nil {
		return nil, err
	}
	m, err := lease.New(ctx, p.Pool, lease.ShedLock(), lease.Owner("go-1"))
	return &bank{db: p.DB.WithContext(ctx), leases: m}, err
}

func (b *bank) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return b.leases.Close(ctx)
}

// perform does a task with all workers.
func (b *bank) perform(ctx context.Context, task string) (tally.Report, error) {
	return tally.Up(workers, each, func(n int64) (tally.Report, error) {
		id := 1 + n%rows
		switch task {
		case deposits:
			return b.deposit(id, 1+n%7)
		case withdrawals:
			return b.withdraw(id, 1+n%5)
		case orderLines:
			return b.addLine(id, 1+n%7)
		default:
			return b.night(ctx, night(nights-1-n)) // from the other end, so that both get some
		}
	})
}

// deposit reads, adds and saves.
func (b *bank) deposit(id, amount int64) (tally.Report, error) {
	return b.again(func(tx *gorm.DB) (tally.Report, error) {
		var account Account
		if err := tx.First(&account, id).Error; err != nil {
			return tally.Report{}, err
		}
		account.Balance += amount
		return tally.Report{Done: 1, Amount: amount}, tx.Save(&account).Error
	})
}

// withdraw holds the row, as LockModeType.PESSIMISTIC_WRITE does.
func (b *bank) withdraw(id, amount int64) (tally.Report, error) {
	return b.again(func(tx *gorm.DB) (tally.Report, error) {
		account := Account{ID: id}
		if err := gormlock.LockRow(tx, &account, gormlock.ForNoKeyUpdate); err != nil || account.Balance < amount {
			return tally.Report{}, err
		}
		return tally.Report{Done: 1, Amount: amount}, tx.Model(&account).Update("balance", account.Balance-amount).Error
	})
}

// addLine adds a line if the order has room for it, and moves the version of the order: LockModeType.OPTIMISTIC_FORCE_INCREMENT.
func (b *bank) addLine(id, amount int64) (tally.Report, error) {
	return b.again(func(tx *gorm.DB) (tally.Report, error) {
		var order Order
		if err := tx.Preload("Lines").First(&order, id).Error; err != nil {
			return tally.Report{}, err
		}
		sum := amount
		for _, line := range order.Lines {
			sum += line.Amount
		}
		if sum > room {
			return tally.Report{}, nil
		}
		if err := tx.Create(&Line{OrderID: id, Amount: amount}).Error; err != nil {
			return tally.Report{}, err
		}
		return tally.Report{Done: 1, Amount: amount}, gormlock.Touch(tx, &order)
	})
}

// night is the job of one night, under the lock of the Java side's @SchedulerLock.
func (b *bank) night(ctx context.Context, night string) (tally.Report, error) {
	held, err := b.leases.TryAcquire(ctx, lockkey.Of(night), 10*time.Minute, lease.AtLeast(5*time.Minute))
	if errors.Is(err, gormlock.ErrNotAcquired) {
		return tally.Report{}, nil
	}
	if err != nil {
		return tally.Report{}, err
	}
	err = b.db.Create(&Run{Night: night, DoneBy: "Go"}).Error
	return tally.Report{Done: 1}, errors.Join(err, held.Release(context.WithoutCancel(ctx)))
}

// again runs fn in transactions until it is not too late.
func (b *bank) again(fn func(tx *gorm.DB) (tally.Report, error)) (tally.Report, error) {
	var r tally.Report
	again := int64(0)
	err := gormlock.Transaction(b.db, func(tx *gorm.DB) (err error) {
		r, err = fn(tx)
		return err
	}, gormlock.Attempts(1000), gormlock.OnRetry(func(int, error) { again++ }))
	r.Again = again
	return r, err
}
