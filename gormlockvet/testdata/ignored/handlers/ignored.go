package ignored

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/gormlock/gormlock/work"
	"gorm.io/gorm"
)

type Mail struct {
	work.Job
	To string
}

func wrong(ctx context.Context, db, tx *gorm.DB, m *Mail) error {
	work.Migrate(db, &Mail{})       // want `work.Migrate, which alone says`
	work.Enqueue(tx, m)             // want `work.Enqueue, which alone says`
	work.Complete(tx, m)            // want `work.Complete, which alone says`
	_ = work.Complete(tx, m)        // want `work.Complete, which alone says`
	work.Requeue(ctx, db, &Mail{})  // want `work.Requeue, which alone says`
	w, _ := work.New(db, handle)    // want `work.New, which alone says`
	go w.Run(ctx)                   // want `work.Worker.Run: it says whether a handler was cut off`
	w.Run(ctx)                      // want `work.Worker.Run`
	n, _ := w.Drain(ctx)            // want `work.Worker.Drain`
	db.Model(m).Update("to", "you") // want `a write of Mail may be refused`
	log.Print(n)
	return nil
}

func handle(ctx context.Context, m *Mail) error {
	if m.To == "" {
		work.Dead(errors.New("no address")) // want `work.Dead: a handler that does not return it has done its job`
		return nil
	}
	if m.Attempts > 3 {
		work.Later(time.Hour, nil) // want `work.Later: a handler`
	}
	return nil
}

func right(ctx context.Context, db, tx *gorm.DB, m *Mail) error {
	w, err := work.New(db, func(ctx context.Context, m *Mail) error {
		if m.To == "" {
			return work.Dead(errors.New("no address"))
		}
		return work.Later(time.Minute, nil)
	})
	if err != nil {
		return err
	}
	go func() { _ = w.Run(ctx) }()
	go func() {
		if err := w.Run(ctx); err != nil {
			log.Print(err)
		}
	}()
	if n, err := w.Drain(ctx); err != nil || n == 0 {
		return err
	}
	stats, _ := work.Stats(ctx, db, &Mail{})
	log.Print(stats)
	return errors.Join(work.Enqueue(tx, m), work.Complete(tx, m))
}
