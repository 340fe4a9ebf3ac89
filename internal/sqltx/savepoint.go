package sqltx

import (
	"database/sql/driver"
	"errors"

	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/sqltext"
)

// Answer is how the server answered a text.
type Answer struct {
	Failed        bool // one of its statements failed: those before it were executed, those after it were not
	Ours          bool // the text is gormlock's: if it begins with a savepoint, no statement can fail before that
	Stored        bool // it has stored something, or may have. For rows this is reported when they are closed, see Watcher.Stored
	Before, After Status
}

// heard is a text from when it is sent to the server until its answer comes.
type heard struct {
	text     sqltext.Text
	implicit sqltext.Implicit
	before   Status
	ours     bool
	quiet    bool // it changes nothing that the watcher follows, unless it fails
	told     bool
}

// stored reports whether a text has stored something, or may have. For a single INSERT, UPDATE or DELETE the server says how many rows it has
// written. It does not say what a function has written.
func (h *heard) stored(result driver.Result, err error) bool {
	switch {
	case !h.text.Writes:
		return false
	case err != nil:
		return !h.text.Single
	case !h.text.Counted || result == nil:
		return true
	}
	n, unknown := result.RowsAffected()
	return n != 0 || unknown != nil
}

// listen looks at a text before it is executed. A text of gormlock need not be read. If listen returns an error, the text would commit
// and the watcher refuses that.
func (c *loan) listen(query string, own *sqltext.Own) (heard, error) {
	if c.opening == nil || c.opening.Watcher == nil {
		return heard{told: true}, nil
	}
	var h heard
	if own != nil {
		h.text, h.ours = own.Text, true
	} else {
		h.text = sqltext.Read(query)
	}
	if c.opening.Implicit {
		h.implicit = sqltext.ImplicitIn(query)
	}
	c.implicit = h.implicit
	h.quiet = len(h.text.Commands) == 0 && !h.text.Unsure && !h.text.Writes && !h.text.Renames && h.implicit == sqltext.Nothing
	if h.text.Commits() || h.implicit == sqltext.Commits {
		if err := c.opening.Watcher.Commit(); err != nil {
			return h, err
		}
	}
	if h.text.Ends() {
		h.before = c.status()
	}
	return h, nil
}

// tell tells the watcher the result of a text that has just come.
func (c *loan) tell(h *heard, err error) {
	c.tellWith(h, false, err)
}

// tellExecuted is tell for a text without rows.
func (c *loan) tellExecuted(h *heard, result driver.Result, err error) {
	c.tellWith(h, h.stored(result, err), err)
}

func (c *loan) tellWith(h *heard, stored bool, err error) {
	var after Status
	if err != nil || h.text.Ends() || h.text.Unsure {
		after = c.status()
	}
	c.tellOf(h, stored, err, after)
}

// tellOf tells the watcher the result of a text, and how it left the transaction.
func (c *loan) tellOf(h *heard, stored bool, err error, after Status) {
	if h.told || h.quiet && err == nil || errors.Is(err, driver.ErrSkip) {
		return
	}
	h.told = true
	if h.implicit != sqltext.Nothing && err == nil {
		c.followImplicit(h.implicit)
	}
	c.opening.Watcher.Executed(h.text, Answer{Failed: err != nil, Ours: h.ours, Stored: stored, Before: h.before, After: c.after(err, after)})
}

// after is the state of the transaction after a text, as the driver says. If it does not say, err shows it.
func (c *loan) after(err error, said Status) Status {
	if said == Unknown && !c.opening.Implicit && sqlstate.Of(err) != "" {
		return Aborted // any error of PostgreSQL aborts the transaction
	}
	return said
}

// tellLater keeps a failed text for the caller's next call, because this may be another goroutine than the caller's. If the server has undone
// writes, their structs cannot wait for that call, so the watcher hears of it by Stray.
func (c *loan) tellLater(h heard, err error) {
	late := lateText{h, err, c.status()}
	c.late = append(c.late, late)
	switch after := c.after(err, late.after); {
	case c.expired != nil, after == Gone:
		c.opening.Watcher.Stray(true)
	case after == Aborted:
		c.opening.Watcher.Stray(false)
	}
}

// Follow tells the Watcher what it has not heard yet. It is called on the caller's goroutine after a statement. It is needed because
// database/sql refuses a statement after the end of ctx without calling the driver.
func (o *Opening) Follow() {
	c := &o.loan
	if o.ctx == nil || o.Watcher == nil {
		return
	}
	c.mu.Lock()
	if c.tx == nil || c.tx.over && c.expired == nil {
		c.mu.Unlock()
		return
	}
	if c.expired == nil {
		c.expired = o.ended()
	}
	c.catchUp()
	refused := c.expired != nil
	c.mu.Unlock()
	if refused {
		o.refuse()
	}
}

// refuse tells the Watcher that nothing more is executed, so structs need not wait for the rollback.
func (o *Opening) refuse() {
	if o != nil && o.Watcher != nil {
		o.Watcher.Refused()
	}
}

// Ended is the error of the transaction's ctx. It is nil until ctx has ended, and if no Pool has begun the transaction.
func (o *Opening) Ended() error {
	if o.ctx == nil {
		return nil
	}
	return o.ended()
}

// HasEnded reports whether the transaction's ctx has ended.
func (o *Opening) HasEnded() bool { return o.ctx != nil && o.ctx.Err() != nil }

// MayEnd reports whether the ctx of the transaction can end.
func (o *Opening) MayEnd() bool { return o.ctx != nil && o.ctx.Done() != nil }

// catchUp tells the watcher of texts whose result was closed on another goroutine than the caller's.
func (c *loan) catchUp() {
	late := c.late
	c.late = nil
	for i := range late {
		c.tellOf(&late[i].heard, false, late[i].err, late[i].after)
	}
}

// lateText is a text that the watcher hears of at the caller's next call. Others may have the connection by then, so the state of the
// transaction after the text is noted here.
type lateText struct {
	heard
	err   error
	after Status
}
