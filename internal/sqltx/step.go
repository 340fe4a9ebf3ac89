package sqltx

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"time"
)

// steps is the ctx that pgx keeps for a transaction and uses at each step. For BEGIN and COMMIT it is the ctx of the opening. For a
// rollback it has a time limit of its own. If the opening's ctx cannot end, pgx has nothing to watch.
//
// Other drivers may watch the ctx of a BEGIN as long as the transaction is open. So they get a ctx that only this package ends:
// see beginByDriver.
//
// If the program's ctx is of a type of its own, a goroutine of package context asks for Done, perhaps only after the step.
type steps struct {
	ctx   context.Context
	back  context.Context // of a rollback
	rolls atomic.Bool     // back is set
}

func (s *steps) now() context.Context {
	if s.rolls.Load() {
		return s.back
	}
	return s.ctx
}

func (s *steps) Deadline() (deadline time.Time, ok bool) { return s.now().Deadline() }
func (s *steps) Done() <-chan struct{}                   { return s.now().Done() }
func (s *steps) Err() error                              { return s.now().Err() }
func (s *steps) Value(key any) any                       { return s.now().Value(key) }

func (s *steps) rollBack(ctx context.Context) {
	s.back = ctx
	s.rolls.Store(true)
}

// beginBySteps begins a transaction of pgx.
func (c *loan) beginBySteps(opts driver.TxOptions) (*lentTx, error) {
	c.steps = steps{ctx: c.opening.ctx}
	tx, err := c.beginDriver(&c.steps, opts)
	// As in database/sql: if the driver only refuses to begin, the connection stays open.
	c.clean = err != nil && c.opening.ctx.Err() == nil && !errors.Is(err, driver.ErrBadConn)
	if err == nil {
		err = c.opening.ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return c.begun(tx, nil), nil
}

// bound limits a rollback, until done is called.
func (t *lentTx) bound() (done func()) {
	if t.interrupt != nil {
		timer := time.AfterFunc(rollbackTime, t.interrupt)
		return func() { timer.Stop() }
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.conn.opening.ctx), rollbackTime)
	t.conn.steps.rollBack(ctx)
	return cancel
}
