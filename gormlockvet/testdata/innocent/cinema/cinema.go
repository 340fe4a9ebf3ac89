// Package cinema has workers, leases and schedules that are right.
package cinema

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"example.com/shop/innocent/parcels/sms"
	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/sessionlock"
	"gorm.io/gorm"
)

type Show struct {
	ID      uint
	Film    string
	Sold    int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Ticket struct {
	ID   uint
	Show uint
}

type Cinema struct {
	db     *gorm.DB
	leases *lease.Manager
	locks  *sessionlock.Manager
	sms    sms.Sender
	group  sync.WaitGroup
	queue  sms.Queue
}

// 29: a leader whose work has the ctx it was given, also one step on.
func (c *Cinema) Run(ctx context.Context) error {
	return c.leases.Lead(ctx, gormlock.Key("cinema"), time.Minute, func(leading context.Context) error {
		step, cancel := context.WithTimeout(leading, time.Second)
		defer cancel()
		slog.InfoContext(ctx, "leading")
		return c.db.WithContext(step).Where("show = ?", 0).Delete(&Ticket{}).Error
	})
}

// 30: requests under a lease, where nobody waits in a transaction.
func (c *Cinema) Tell(ctx context.Context) error {
	return c.leases.Do(ctx, gormlock.Key("tell"), time.Minute, func(ctx context.Context) error {
		time.Sleep(time.Millisecond)
		return c.sms.Send(ctx, "all", "a film")
	})
}

// 31: files under a session lock.
func (c *Cinema) Dump(ctx context.Context) error {
	return c.locks.Do(ctx, gormlock.Key("dump"), func(ctx context.Context) error {
		var shows []Show
		if err := c.db.WithContext(ctx).Find(&shows).Error; err != nil {
			return err
		}
		return os.WriteFile("dump", fmt.Append(nil, len(shows)), 0o600)
	})
}

// 32: read under the session lock, then changed.
func (c *Cinema) Rename(ctx context.Context, id uint) error {
	l, err := c.locks.Acquire(ctx, gormlock.Key("show", id))
	if err != nil {
		return err
	}
	defer func() { _ = l.Release(context.WithoutCancel(ctx)) }()
	held, stop := l.Bind(ctx)
	defer stop()
	var s Show
	if err := c.db.WithContext(held).First(&s, id).Error; err != nil {
		return err
	}
	s.Film += "!"
	return c.db.WithContext(held).Save(&s).Error
}

// 33: a loop around Claim that looks at each error.
func (c *Cinema) Work(ctx context.Context) (done int, err error) {
	for {
		shows, err := gormlock.Claim[Show](c.db.WithContext(ctx), 5, map[string]any{"film": "running"})
		if err != nil || len(shows) == 0 {
			return done, err
		}
		for i := range shows {
			shows[i].Film = "done"
			if err := c.db.WithContext(ctx).Save(&shows[i]).Error; err != nil && !errors.Is(err, gormlock.ErrStale) {
				return done, err
			}
			done++
		}
	}
}

// 34: what is counted with each attempt starts anew with it.
func (c *Cinema) Sell(ctx context.Context, id uint, n int) ([]Ticket, error) {
	type result struct {
		tickets []Ticket
		sums    map[uint]int
	}
	var out result
	err := gormlock.Transaction(c.db.WithContext(ctx), func(tx *gorm.DB) error {
		out = result{sums: map[uint]int{}}
		for range n {
			t := Ticket{Show: id}
			if err := tx.Create(&t).Error; err != nil {
				return err
			}
			out.tickets = append(out.tickets, t)
			out.sums[id]++
		}
		return tx.Model(&Show{ID: id}).Update("sold", gorm.Expr("sold + ?", n)).Error
	}, gormlock.Attempts(20), gormlock.Locking(gormlock.Key("show", id)))
	return out.tickets, err
}

// 35: a queue of one's own, in memory of this attempt alone.
func (c *Cinema) Local(ctx context.Context) error {
	var sent *sms.Queue
	err := gormlock.Transaction(c.db.WithContext(ctx), func(tx *gorm.DB) error {
		q := new(sms.Queue)
		q.Add("one")
		sent = q
		return tx.Create(&Ticket{}).Error
	}, gormlock.Attempts(4))
	if err != nil {
		return err
	}
	c.queue.Add("after")
	return sent.Flush(ctx)
}

// 36: workers that wait for each other outside of any transaction.
func (c *Cinema) Many(ctx context.Context, ids []uint) error {
	errs := make(chan error, len(ids))
	for _, id := range ids {
		c.group.Go(func() {
			errs <- gormlock.Transaction(c.db.WithContext(ctx), func(tx *gorm.DB) error {
				s := Show{ID: id}
				if err := gormlock.LockRow(tx, &s); err != nil {
					return err
				}
				s.Sold++
				return tx.Save(&s).Error
			})
		})
	}
	c.group.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}
