// Package mill has workers, schedules and leases.
package mill

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"example.com/shop/planted/mill/pb"
	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/sessionlock"
	"gorm.io/gorm"
)

type Batch struct {
	ID      uint
	State   string
	Tons    int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Log struct {
	ID   uint
	Text string
}

// Mill is made once, with a ctx that ends when the program does.
type Mill struct {
	ctx     context.Context
	db      *gorm.DB
	leases  *lease.Manager
	locks   *sessionlock.Manager
	planner pb.PlannerClient
	dir     string

	mu        sync.Mutex
	processed int
	byState   [2][]uint
}

type Option func(*Mill)

func WithDir(dir string) Option { return func(m *Mill) { m.dir = dir } }

func New(ctx context.Context, db *gorm.DB, opts ...Option) *Mill {
	m := &Mill{ctx: ctx, db: db}
	for _, opt := range opts {
		opt(m)
	}
	return m
}

func (m *Mill) Start(ctx context.Context) error {
	go func() {
		m.leases.Do(ctx, gormlock.Key("sweep"), time.Minute, m.sweep) // misuse: ignored
	}()
	return m.leases.Every(ctx, gormlock.Key("nightly"), lease.Daily(3, 0, time.UTC), func(run context.Context, tick time.Time) error {
		var due []Batch
		if err := m.db.WithContext(ctx).Where("created_at < ?", tick).Find(&due).Error; err != nil { // misuse: outer
			return err
		}
		slog.InfoContext(ctx, "due", "n", len(due))
		return m.sweep(run)
	})
}

func (m *Mill) sweep(ctx context.Context) error {
	return m.db.WithContext(ctx).Where("state = ?", "done").Delete(&Log{}).Error
}

func (m *Mill) Rebuild() error {
	return m.locks.Do(m.ctx, gormlock.Key("rebuild"), m.rebuild)
}

func (m *Mill) rebuild(held context.Context) error {
	if err := held.Err(); err != nil {
		return err
	}
	return m.db.WithContext(m.ctx).Create(&Log{Text: "rebuilt"}).Error // misuse: outer
}

func (m *Mill) Hold(ctx context.Context) {
	l, _ := m.leases.Acquire(ctx, gormlock.Key("hold"), time.Minute, lease.NoRenewal()) // misuse: ignored
	tick := time.NewTicker(20 * time.Second)
	defer tick.Stop()
	for range tick.C {
		l.Renew(ctx) // misuse: ignored
	}
}

func (m *Mill) Drain(ctx context.Context) (n int) {
	for ctx.Err() == nil {
		batches, _ := gormlock.Claim[Batch](m.db.WithContext(ctx), 10, map[string]any{"state": "running"}) // misuse: ignored
		if len(batches) == 0 {
			break
		}
		n += len(batches)
	}
	return n
}

func (m *Mill) Bill(ctx context.Context, request string) (int64, error) {
	var out int64
	err := m.db.WithContext(ctx).Transaction(func(tx *gorm.DB) (err error) {
		out, err = gormlock.Once(tx, request, func(tx *gorm.DB) (int64, error) {
			l := Log{Text: request}
			err := m.db.Create(&l).Error // misuse: outer
			return int64(l.ID), err
		})
		return err
	})
	return out, err
}

func (m *Mill) Grind(ctx context.Context, id uint) error {
	return gormlock.Transaction(m.db.WithContext(ctx), func(tx *gorm.DB) error {
		defer func() {
			m.mu.Lock()
			m.processed++ // misuse: retried
			m.mu.Unlock()
		}()
		var b Batch
		if err := tx.Take(&b, id).Error; err != nil {
			return err
		}
		at := 0
		if b.State == "done" {
			at = 1
		}
		m.byState[at] = append(m.byState[at], b.ID) // misuse: retried
		return m.archive(&b)                        // misuse: retried
	}, gormlock.Attempts(6))
}

func (m *Mill) archive(b *Batch) error { return m.write(b.State, []byte(b.State)) }

func (m *Mill) write(name string, body []byte) error {
	return os.WriteFile(filepath.Join(m.dir, name), body, 0o600)
}

func (m *Mill) Collect(ctx context.Context, loads <-chan int64) error {
	return gormlock.Transaction(m.db.WithContext(ctx), func(tx *gorm.DB) error {
		var b Batch
		if err := tx.Scopes(gormlock.WithRowLock(gormlock.ForNoKeyUpdate)).First(&b).Error; err != nil {
			return err
		}
		for tons := range loads { // misuse: held
			b.Tons += tons
		}
		return tx.Save(&b).Error
	})
}

func (m *Mill) Plan(ctx context.Context, day string) error {
	return gormlock.Transaction(m.db.WithContext(ctx), func(tx *gorm.DB) error {
		reply, err := m.planner.Plan(ctx, &pb.PlanRequest{Day: day}) // misuse: held
		if err != nil {
			return err
		}
		return tx.Create(&Batch{Tons: reply.Load}).Error
	}, gormlock.Locking(gormlock.Key("plan", day)))
}
