// Package work has the names of gormlock's package work.
package work

import (
	"context"
	"time"

	"gorm.io/gorm"
)

// Job is embedded in the structs of jobs.
type Job struct {
	ID       int64  `gorm:"primaryKey"`
	Queue    string `gorm:"not null;default:default"`
	State    string `gorm:"not null;default:ready"`
	RunAt    time.Time
	Attempts int
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

// Worker runs jobs.
type Worker[T any] struct{}

// Option changes a worker.
type Option interface{ apply() }

// QueueStats counts jobs.
type QueueStats struct{ Ready int64 }

// New makes a worker.
func New[T any](db *gorm.DB, handle func(ctx context.Context, job *T) error, opts ...Option) (*Worker[T], error) {
	return nil, nil
}

// Run works until ctx ends.
func (w *Worker[T]) Run(ctx context.Context) error { return nil }

// Drain works until nothing is ready.
func (w *Worker[T]) Drain(ctx context.Context) (int, error) { return 0, nil }

// Migrate makes the table.
func Migrate(db *gorm.DB, model any, opts ...Option) error { return nil }

// Enqueue adds jobs.
func Enqueue[T any](tx *gorm.DB, jobs ...*T) error { return nil }

// Complete ends a job.
func Complete[T any](tx *gorm.DB, job *T) error { return nil }

// Later runs a job again.
func Later(d time.Duration, cause error) error { return cause }

// Dead never runs a job again.
func Dead(cause error) error { return cause }

// Stats counts.
func Stats(ctx context.Context, db *gorm.DB, model any) ([]QueueStats, error) { return nil, nil }

// Requeue makes dead jobs ready.
func Requeue(ctx context.Context, db *gorm.DB, model any, ids ...int64) (int64, error) { return 0, nil }

// Workers is how many.
func Workers(n int) Option { return nil }
