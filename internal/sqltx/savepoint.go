package sqltx

import (
	"database/sql/driver"
	"errors"

	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/sqltext"
)

// Answer is how the server took a text.
type Answer struct {
	Failed        bool // one of its statements failed: those before it were executed, those after it were not
	Ours          bool // the text is ours: no statement of it can fail before the savepoint that it begins with
	Before, After Status
}

// heard is a text that was sent to the server, until its answer has come.
type heard struct {
	text     sqltext.Text
	implicit sqltext.Implicit
	before   Status
	ours     bool
	quiet    bool // it changes nothing that the watcher follows, unless it fails
	told     bool
}

// listen looks at a text before it is executed, which is read unless it is ours. If it returns an error, the transaction must not be
// committed.
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

// tell tells the watcher the result of a text, which has just come.
func (c *loan) tell(h *heard, err error) {
	var after Status
	if err != nil || h.text.Ends() || h.text.Unsure {
		after = c.status()
	}
	c.tellOf(h, err, after)
}

// tellOf tells the watcher the result of a text, and how it left the transaction.
func (c *loan) tellOf(h *heard, err error, after Status) {
	if h.told || h.quiet && err == nil || errors.Is(err, driver.ErrSkip) {
		return
	}
	h.told = true
	if h.implicit != sqltext.Nothing && err == nil {
		c.followImplicit(h.implicit)
	}
	answer := Answer{Failed: err != nil, Ours: h.ours, Before: h.before, After: after}
	if answer.After == Unknown && !c.opening.Implicit && sqlstate.Of(err) != "" {
		answer.After = Aborted // the driver does not tell, and an error of PostgreSQL aborts
	}
	c.opening.Watcher.Executed(h.text, answer)
}

// catchUp tells the watcher of texts whose result was closed on another goroutine than the caller's.
func (c *loan) catchUp() {
	late := c.late
	c.late = nil
	for i := range late {
		c.tellOf(&late[i].heard, late[i].err, late[i].after)
	}
}

// lateText is a text of which the watcher hears at the caller's next call. Others may have the connection then, so how it left the transaction
// is noted before.
type lateText struct {
	heard
	err   error
	after Status
}
