package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
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

func newBank(ctx context.Context, p *place) (*bank, error) {
	if err := lease.Migrate(ctx, p.pool, lease.ShedLock()); err != nil {
		return nil, err
	}
	m, err := lease.New(ctx, p.pool, lease.ShedLock(), lease.Owner("go-1"))
	return &bank{db: p.db.WithContext(ctx), leases: m}, err
}

func (b *bank) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return b.leases.Close(ctx)
}

// perform does a task with all workers.
func (b *bank) perform(ctx context.Context, task string) (report, error) {
	return inParallel(func(n int64) (report, error) {
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
func (b *bank) deposit(id, amount int64) (report, error) {
	return b.again(func(tx *gorm.DB) (report, error) {
		var account Account
		if err := tx.First(&account, id).Error; err != nil {
			return report{}, err
		}
		account.Balance += amount
		return report{Done: 1, Amount: amount}, tx.Save(&account).Error
	})
}

// withdraw holds the row, as LockModeType.PESSIMISTIC_WRITE does.
func (b *bank) withdraw(id, amount int64) (report, error) {
	return b.again(func(tx *gorm.DB) (report, error) {
		account := Account{ID: id}
		if err := gormlock.LockRow(tx, &account, gormlock.ForNoKeyUpdate); err != nil || account.Balance < amount {
			return report{}, err
		}
		return report{Done: 1, Amount: amount}, tx.Model(&account).Update("balance", account.Balance-amount).Error
	})
}

// addLine adds a line if the order has room for it, and moves the version of the order: LockModeType.OPTIMISTIC_FORCE_INCREMENT.
func (b *bank) addLine(id, amount int64) (report, error) {
	return b.again(func(tx *gorm.DB) (report, error) {
		var order Order
		if err := tx.Preload("Lines").First(&order, id).Error; err != nil {
			return report{}, err
		}
		sum := amount
		for _, line := range order.Lines {
			sum += line.Amount
		}
		if sum > room {
			return report{}, nil
		}
		if err := tx.Create(&Line{OrderID: id, Amount: amount}).Error; err != nil {
			return report{}, err
		}
		return report{Done: 1, Amount: amount}, gormlock.Touch(tx, &order)
	})
}

// night is the job of one night, under the lock of the Java side's @SchedulerLock.
func (b *bank) night(ctx context.Context, night string) (report, error) {
	held, err := b.leases.TryAcquire(ctx, lockkey.Of(night), 10*time.Minute, lease.AtLeast(5*time.Minute))
	if errors.Is(err, gormlock.ErrNotAcquired) {
		return report{}, nil
	}
	if err != nil {
		return report{}, err
	}
	err = b.db.Create(&Run{Night: night, DoneBy: "Go"}).Error
	return report{Done: 1}, errors.Join(err, held.Release(context.WithoutCancel(ctx)))
}

// again runs fn in transactions until it is not too late.
func (b *bank) again(fn func(tx *gorm.DB) (report, error)) (report, error) {
	var r report
	again := int64(0)
	err := gormlock.Transaction(b.db, func(tx *gorm.DB) (err error) {
		r, err = fn(tx)
		return err
	}, gormlock.Attempts(1000), gormlock.OnRetry(func(int, error) { again++ }))
	r.Again = again
	return r, err
}

// report is what one side did in a task.
type report struct {
	Done   int64 // writes that are stored
	Amount int64 // moved by them
	Again  int64 // runs that came too late and were made again
}

// inParallel adds up what the workers of a side do.
func inParallel(do func(n int64) (report, error)) (sum report, err error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for worker := range int64(workers) {
		wg.Go(func() {
			for i := range int64(each) {
				r, failed := do(worker + i)
				mu.Lock()
				sum = report{sum.Done + r.Done, sum.Amount + r.Amount, sum.Again + r.Again}
				err = errors.Join(err, failed)
				stop := err != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	wg.Wait()
	return sum, err
}
