package jobqueues

import (
	"context"
	"time"

	"github.com/gormlock/gormlock/tests/docs/runner"
	"github.com/gormlock/gormlock/work"
)

type Job struct {
	ID           int64
	Queue        string
	Payload      string
	State        string `gorm:"default:ready"`
	Attempts     int
	MaxAttempts  int `gorm:"default:5"`
	ClaimedBy    string
	ClaimedUntil *time.Time `gormlock:"unversioned"`
	LastError    string
	Version      int64 `gorm:"default:1" gormlock:"version"`
}

type OutboxEvent struct {
	ID     int64
	SentAt *time.Time
}

type Receipt struct{ JobID int64 }

type Mail struct {
	work.Job
	AccountID int64
	To, Text  string
}

type Order struct {
	ID    int64
	Email string
}

func send(context.Context, string, string, int64) error { return nil }

func publish([]OutboxEvent) error { return nil }

var (
	worker = "worker-1"
	id     int64
	job    Job
	jobs   []Job
	order  Order
	m      *Mail
	w      *work.Worker[Mail]
)

func setup(world *runner.World) {
	world.DocumentsTables()
	world.Tables(&OutboxEvent{}, &Receipt{}, &Order{})
	runner.Check(work.Migrate(db, &Mail{}))
	m = &Mail{Job: work.Job{State: "running"}}
	world.Rows(m)
	var stop context.CancelFunc
	ctx, stop = context.WithTimeout(ctx, 2*time.Second) // a worker runs until it ends
	world.Defer(func() error { stop(); return nil })
	soon, past := time.Now().Add(time.Minute), time.Now().Add(-time.Minute)
	job, jobs = Job{ClaimedBy: worker, ClaimedUntil: &soon}, []Job{{Queue: "mail"}, {Queue: "mail"}}
	world.Rows(&job, &Job{}, &Job{Attempts: 5, ClaimedUntil: &past}, &OutboxEvent{})
}
