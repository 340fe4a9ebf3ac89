// Package post sends letters by handlers of package work.
package post

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/work"
	"gorm.io/gorm"
)

type Letter struct {
	work.Job
	AccountID int64
	To        string
}

type Account struct {
	ID      int64
	Balance int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Office struct {
	ctx  context.Context
	db   *gorm.DB
	http *http.Client
}

// Run is the life of the process.
func (o *Office) Run(ctx context.Context) error {
	w, err := work.New(o.db, o.handle, work.Workers(4))
	if err != nil {
		return err
	}
	bulk, err := work.New(o.db, timed(time.Minute, func(job context.Context, l *Letter) error {
		return o.post(ctx, l) // misuse: outer
	}))
	if err != nil {
		return err
	}
	go bulk.Run(ctx) // misuse: ignored
	return w.Run(ctx)
}

func timed[T any](d time.Duration, next func(context.Context, *T) error) func(context.Context, *T) error {
	return func(ctx context.Context, job *T) error {
		limited, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return next(limited, job)
	}
}

func (o *Office) handle(ctx context.Context, l *Letter) error {
	if l.To == "" {
		work.Dead(errors.New("no address")) // misuse: ignored
	}
	if err := o.post(o.ctx, l); err != nil { // misuse: outer
		return work.Later(time.Minute, err)
	}
	return o.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := o.charge(tx, l); err != nil {
			return err
		}
		work.Complete(tx, l) // misuse: ignored
		return nil
	})
}

func (o *Office) charge(tx *gorm.DB, l *Letter) error {
	var a Account
	if err := tx.First(&a, l.AccountID).Error; err != nil {
		return err
	}
	a.Balance--
	return tx.Save(&a).Error
}

func (o *Office) post(ctx context.Context, l *Letter) error {
	res, err := o.http.Head("http://localhost/" + l.To)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// Order writes an order and a letter.
func (o *Office) Order(ctx context.Context, a *Account) error {
	return gormlock.Transaction(o.db.WithContext(ctx), func(tx *gorm.DB) error {
		if err := tx.Save(a).Error; err != nil {
			return err
		}
		return work.Enqueue(o.db, &Letter{AccountID: a.ID}) // misuse: outer
	})
}

// Hurry is called by support.
func (o *Office) Hurry(ctx context.Context, id int64) error {
	slog.InfoContext(ctx, "hurry", "id", id)
	return o.db.WithContext(ctx).Exec("UPDATE letters SET run_at = now() WHERE id = ?", id).Error // misuse: around
}

// Drop takes a job that may be running.
func (o *Office) Drop(l *Letter) {
	o.db.Delete(l) // misuse: ignored
}
