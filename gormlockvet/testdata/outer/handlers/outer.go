package outer

import (
	"context"
	"log/slog"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/work"
	"gorm.io/gorm"
)

type Mail struct {
	work.Job
	To string
}

type Sent struct{ ID int64 }

func send(ctx context.Context, m *Mail) error { return ctx.Err() }

func literal(ctx context.Context, db *gorm.DB) error {
	_, err := work.New(db, func(job context.Context, m *Mail) error {
		if err := db.WithContext(job).Create(&Sent{}).Error; err != nil {
			return err
		}
		slog.InfoContext(ctx, "sending")
		if err := db.WithContext(ctx).Create(&Sent{}).Error; err != nil { // want `the ctx from outside`
			return err
		}
		limited, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := send(limited, m); err != nil { // want `the ctx from outside`
			return err
		}
		return send(ctx, m) // want `the ctx from outside`
	}, work.Workers(3))
	return err
}

// The transaction of a handler is begun on the db that it has, with the ctx it was given.
func transaction(db *gorm.DB) (*work.Worker[Mail], error) {
	return work.New(db, func(ctx context.Context, m *Mail) error {
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&Sent{}).Error; err != nil {
				return err
			}
			if err := work.Enqueue(db, &Mail{}); err != nil { // want `Enqueue runs on the db from outside of the transaction`
				return err
			}
			if err := work.Enqueue(tx, &Mail{}); err != nil {
				return err
			}
			return work.Complete(db, m) // want `Complete runs on the db from outside of the transaction`
		})
	})
}

type mailer struct {
	ctx context.Context
	db  *gorm.DB
}

func (s *mailer) start() (*work.Worker[Mail], error) { return work.New(s.db, s.handle) }

func (s *mailer) handle(ctx context.Context, m *Mail) error {
	if err := send(s.ctx, m); err != nil { // want `the ctx from outside`
		return err
	}
	return gormlock.Transaction(s.db.WithContext(ctx), func(tx *gorm.DB) error {
		return work.Complete(tx, m)
	}, gormlock.Locking(gormlock.Key("mail", m.ID)))
}

// Made by a function, and wrapped by another.
func made(outer context.Context) func(context.Context, *Mail) error {
	return func(ctx context.Context, m *Mail) error {
		return send(outer, m) // want `the ctx from outside`
	}
}

func logged[T any](next func(context.Context, *T) error) func(context.Context, *T) error {
	return func(ctx context.Context, job *T) error {
		slog.InfoContext(ctx, "job")
		return next(ctx, job)
	}
}

func wrapped(ctx context.Context, db *gorm.DB) error {
	if _, err := work.New(db, made(ctx)); err != nil {
		return err
	}
	_, err := work.New(db, logged(func(job context.Context, m *Mail) error {
		return send(ctx, m) // want `the ctx from outside`
	}))
	return err
}

// What is meant to live longer than the job does not use its ctx.
func longer(ctx context.Context, db *gorm.DB) error {
	_, err := work.New(db, logged(func(job context.Context, m *Mail) error {
		after := context.WithoutCancel(ctx)
		if err := send(job, m); err != nil {
			return db.WithContext(after).Create(&Sent{}).Error
		}
		return send(context.Background(), m)
	}))
	return err
}
