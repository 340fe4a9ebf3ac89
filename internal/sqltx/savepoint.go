package sqltx

import (
	"database/sql/driver"
	"errors"
	"reflect"

	"github.com/gormlock/gormlock/internal/sqltext"
)

// Status is the state of the session's transaction, as the server says with each answer.
type Status byte

// The states, with the letters of the protocol. Of a driver that does not pass them on none is known.
const (
	Unknown Status = 0
	Idle    Status = 'I'
	Open    Status = 'T'
	Aborted Status = 'E'
)

// Answer is how the server took a text.
type Answer struct {
	Failed        bool // a statement of it failed: those before it were executed, those behind it were not
	Before, After Status
}

// reporter is what passes the state of the transaction on: pgx's connection to the server.
type reporter interface{ TxStatus() byte }

// reporterOf finds it in a driver's connection, by the names of the methods that lead there: what they return has types of
// the driver's. Conn and PgConn are those of pgx. Nil where there is none.
func reporterOf(conn any) reporter {
	for range 4 { // as many drivers may be wrapped around each other
		wrapper, ok := conn.(interface{ Raw() driver.Conn })
		if !ok {
			break
		}
		conn = wrapper.Raw()
	}
	if conn == nil {
		return nil
	}
	session := answer(reflect.ValueOf(conn).MethodByName("Conn"))
	if !session.IsValid() {
		return nil
	}
	wire := answer(session.MethodByName("PgConn"))
	if !wire.IsValid() {
		return nil
	}
	found, _ := wire.Interface().(reporter)
	return found
}

// answer is what a method without arguments returns.
func answer(method reflect.Value) reflect.Value {
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 {
		return reflect.Value{}
	}
	result := method.Call(nil)[0]
	if result.Kind() == reflect.Interface {
		result = result.Elem()
	}
	if result.Kind() == reflect.Pointer && result.IsNil() {
		return reflect.Value{}
	}
	return result
}

// heard is a text on its way to the server and back.
type heard struct {
	text     sqltext.Text
	implicit sqltext.Implicit
	before   Status
	told     bool
}

// listen reads a text before it is executed. An error says that the transaction must not be committed.
func (c *loan) listen(query string) (heard, error) {
	if c.opening == nil || c.opening.Watcher == nil {
		return heard{told: true}, nil
	}
	h := heard{text: sqltext.Read(query)}
	if c.opening.Implicit {
		h.implicit = sqltext.ImplicitIn(query)
	}
	c.implicit = h.implicit
	h.told = len(h.text.Commands) == 0 && !h.text.Unsure && !h.text.Writes && h.implicit == sqltext.Nothing
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

// tell says what became of a text.
func (c *loan) tell(h *heard, err error) {
	if h.told || errors.Is(err, driver.ErrSkip) {
		return
	}
	h.told = true
	if h.implicit != sqltext.Nothing && err == nil {
		c.followImplicit(h.implicit)
	}
	answer := Answer{Failed: err != nil, Before: h.before}
	if h.text.Ends() || h.text.Unsure {
		answer.After = c.status()
	}
	c.opening.Watcher.Executed(h.text, answer)
}

// status asks the driver, which knows without asking the server.
func (c *loan) status() Status {
	if !c.asked {
		c.asked, c.reporter = true, reporterOf(c.driver)
	}
	if c.reporter == nil {
		return Unknown
	}
	return Status(c.reporter.TxStatus())
}

// catchUp tells of texts whose result was closed from another goroutine than the caller's.
func (c *loan) catchUp() {
	late := c.late
	c.late = nil
	for i := range late {
		c.tell(&late[i].heard, late[i].err)
	}
}

// lateText is a text to be told of when the caller comes back.
type lateText struct {
	heard
	err error
}
