package jobqueues

import (
	"context"
	"time"

	"github.com/gormlock/gormlock/tests/docs/runner"
	"github.com/gormlock/gormlock/work"
)

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

var (
	order Order
	m     *Mail
	w     *work.Worker[Mail]
)

func setup(world *runner.World) {
	world.Tables(&Receipt{}, &Order{})
	runner.Check(work.Migrate(db, &Mail{}))
	m = &Mail{}
	world.Rows(m)
	runner.Check(db.Exec("UPDATE mails SET state = 'running', claimed_until = now() + interval '1 hour'").Error)
	runner.Check(db.First(m).Error)
	var stop context.CancelFunc
	ctx, stop = context.WithTimeout(ctx, 2*time.Second) // a worker runs until it ends
	world.Defer(func() error { stop(); return nil })
}
