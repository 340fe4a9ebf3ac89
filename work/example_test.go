package work_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// Letter is a job of the examples.
type Letter struct {
	work.Job
	To string
}

// example starts PostgreSQL with the table of letters. A program opens its own db, with the plugin, and calls work.Migrate.
func example(opts ...work.Option) (ctx context.Context, db *gorm.DB, end func()) {
	t := pgtest.NewExample()
	db = pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	if err := work.Migrate(db, &Letter{}, opts...); err != nil {
		panic(err)
	}
	return context.Background(), db, t.End
}

// A worker runs jobs until its context ends: in a program, when it is told to stop.
func ExampleWorker_Run() {
	ctx, db, end := example()
	defer end()
	if err := work.Enqueue(db, &Letter{To: "Ann"}); err != nil {
		fmt.Println(err)
		return
	}

	ctx, stop := context.WithCancel(ctx)
	worker, err := work.New(db, func(_ context.Context, l *Letter) error {
		fmt.Println("to", l.To)
		stop() // for this example
		return nil
	}, work.Workers(16), work.Grace(10*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := worker.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: to Ann
}

// Drain works until nothing is ready: in tests, and in programs that are started now and then.
func ExampleWorker_Drain() {
	ctx, db, end := example()
	defer end()
	if err := work.Enqueue(db, &Letter{To: "Ann"}, &Letter{To: "Bob"}); err != nil {
		fmt.Println(err)
		return
	}

	worker, err := work.New(db, func(context.Context, *Letter) error { return nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	done, err := worker.Drain(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("done:", done)
	// Output: done: 2
}

// A job is stored with what asks for it, or not at all.
func ExampleEnqueue() {
	ctx, db, end := example()
	defer end()

	err := db.Transaction(func(tx *gorm.DB) error {
		if err := work.Enqueue(tx, &Letter{To: "Ann"}); err != nil {
			return err
		}
		return errors.New("the order is refused")
	})
	fmt.Println(err)
	queues, err := work.Stats(ctx, db, &Letter{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("queues with jobs:", len(queues))
	// Output:
	// the order is refused
	// queues with jobs: 0
}

// The job is done in the transaction of its effect: both are stored, or neither is.
func ExampleComplete() {
	type Sent struct{ ID int64 }
	ctx, db, end := example()
	defer end()
	if err := errors.Join(db.AutoMigrate(&Sent{}), work.Enqueue(db, &Letter{To: "Ann"})); err != nil {
		fmt.Println(err)
		return
	}

	worker, err := work.New(db, func(ctx context.Context, l *Letter) error {
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&Sent{ID: l.ID}).Error; err != nil {
				return err
			}
			return work.Complete(tx, l) // ErrStale: another worker has taken over
		})
	})
	if err == nil {
		_, err = worker.Drain(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("sent:", db.Find(&[]Sent{}).RowsAffected)
	// Output: sent: 1
}

// If a partner is not there, that is no failure: the job is run again later, and the attempt does not count.
func ExampleLater() {
	ctx, db, end := example()
	defer end()
	if err := work.Enqueue(db, &Letter{To: "Ann"}); err != nil {
		fmt.Println(err)
		return
	}

	worker, err := work.New(db, func(context.Context, *Letter) error {
		return work.Later(time.Hour, errors.New("the post office is closed"))
	})
	if err == nil {
		_, err = worker.Drain(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	queues, err := work.Stats(ctx, db, &Letter{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("later:", queues[0].Later)
	// Output: later: 1
}

// A job that will never succeed is not tried again until somebody has fixed it.
func ExampleDead() {
	ctx, db, end := example()
	defer end()
	letter := &Letter{}
	if err := work.Enqueue(db, letter); err != nil {
		fmt.Println(err)
		return
	}

	worker, err := work.New(db, func(_ context.Context, l *Letter) error {
		if l.To == "" {
			return work.Dead(errors.New("no address"))
		}
		return nil
	})
	if err == nil {
		_, err = worker.Drain(ctx)
	}
	if err == nil {
		err = db.First(letter).Error
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(letter.State, "-", letter.LastError)
	// Output: dead - no address
}

// Dead jobs become ready again, with all their attempts.
func ExampleRequeue() {
	ctx, db, end := example()
	defer end()
	letter := &Letter{}
	if err := work.Enqueue(db, letter); err != nil {
		fmt.Println(err)
		return
	}
	worker, err := work.New(db, func(context.Context, *Letter) error { return work.Dead(errors.New("no address")) })
	if err == nil {
		_, err = worker.Drain(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	n, err := work.Requeue(ctx, db, &Letter{}, letter.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready again:", n)
	// Output: ready again: 1
}

// Letters to one person are sent one at a time and in order, even if one of them is tried again.
func ExampleOnePer() {
	ctx, db, end := example(work.OnePer("to"))
	defer end()
	if err := work.Enqueue(db, &Letter{To: "Ann"}, &Letter{To: "Ann"}, &Letter{To: "Bob"}); err != nil {
		fmt.Println(err)
		return
	}

	worker, err := work.New(db, func(_ context.Context, l *Letter) error {
		if l.To == "Ann" {
			return work.Later(time.Hour, errors.New("she is away"))
		}
		return nil
	}, work.OnePer("to"))
	if err != nil {
		fmt.Println(err)
		return
	}
	attempts, err := worker.Drain(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("attempts:", attempts) // her second letter waits for the first
	// Output: attempts: 2
}

// Stats says how many jobs there are, by queue.
func ExampleStats() {
	ctx, db, end := example()
	defer end()
	if err := work.Enqueue(db, &Letter{}, &Letter{}); err != nil {
		fmt.Println(err)
		return
	}

	queues, err := work.Stats(ctx, db, &Letter{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range queues {
		fmt.Println(q.Queue, q.Ready)
	}
	// Output: default 2
}
