// Package innocent does with package work what it is for.
package innocent

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/work"
	"gorm.io/gorm"
)

type Letter struct {
	work.Job
	To string
}

type Effect struct{ ID int64 }

type Office struct{ db *gorm.DB }

// A handler may take as long as it wants: nobody waits in a transaction.
func (o *Office) Run(ctx context.Context) error {
	if err := work.Migrate(o.db, &Letter{}); err != nil {
		return err
	}
	w, err := work.New(o.db, func(ctx context.Context, l *Letter) error {
		time.Sleep(time.Millisecond)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost", http.NoBody)
		if err != nil {
			return work.Dead(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return work.Later(time.Minute, err)
		}
		return errors.Join(res.Body.Close(), o.done(ctx, l))
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// The effect and the end of the job are one transaction, on the db of the handler.
func (o *Office) done(ctx context.Context, l *Letter) error {
	return gormlock.Transaction(o.db.WithContext(ctx), func(tx *gorm.DB) error {
		if err := tx.Create(&Effect{}).Error; err != nil {
			return err
		}
		return work.Complete(tx, l)
	}, gormlock.Attempts(3))
}

// A handler writes its own row, and enqueues what comes next.
func (o *Office) next(ctx context.Context, l *Letter) error {
	if err := o.db.WithContext(ctx).Model(l).Update("to", "next").Error; err != nil {
		return err
	}
	return work.Enqueue(o.db.WithContext(ctx), &Letter{To: l.To})
}

// A test's way.
func (o *Office) Drain(ctx context.Context) (int, error) {
	w, err := work.New(o.db, o.next)
	if err != nil {
		return 0, err
	}
	return w.Drain(ctx)
}

// Of each queue, how much is ready.
func (o *Office) Health(ctx context.Context) (int64, error) {
	stats, err := work.Stats(ctx, o.db, &Letter{})
	if err != nil || len(stats) == 0 {
		return 0, err
	}
	return stats[0].Ready, nil
}
