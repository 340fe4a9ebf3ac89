package sqltx

import (
	"database/sql/driver"
	"errors"
	"reflect"

	"github.com/gormlock/gormlock/internal/sqltext"
)

// Status is the state of the session's transaction, as the server says with each answer.
type Status byte

// The states, with the letters of the protocol. There is none if the driver does not report them.
const (
	Unknown Status = 0
	Idle    Status = 'I'
	Open    Status = 'T'
	Aborted Status = 'E'
)

// Answer is how the server took a text.
type Answer struct {
	Failed        bool // one of its statements failed: those before it were executed, those after it were not
	Before, After Status
}

// reporter reports the state of the transaction: the connection of pgx to the server.
type reporter interface{ TxStatus() byte }

// reporterOf finds the reporter in a driver's connection, by the names of the methods that lead to it: Conn and PgConn
// are those of pgx. (The types that they return belong to the driver.) It returns nil if there is none.
func reporterOf(conn any) reporter {
	for range 4 { // so many drivers may be wrapped around each other
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

// answer returns the result of a method without arguments.
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

// heard is a text that was sent to the server, until its answer has come.
type heard struct {
	text     sqltext.Text
	implicit sqltext.Implicit
	before   Status
	told     bool
}

// listen looks at a text before it is executed. If it returns an error, the transaction must not be committed.
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

// tell tells the watcher the result of a text.
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

// status asks the driver, which knows without a question to the server.
func (c *loan) status() Status {
	if !c.asked {
		c.asked, c.reporter = true, reporterOf(c.driver)
	}
	if c.reporter == nil {
		return Unknown
	}
	return Status(c.reporter.TxStatus())
}

// catchUp tells the watcher of texts whose result was closed on another goroutine than the caller's.
func (c *loan) catchUp() {
	late := c.late
	c.late = nil
	for i := range late {
		c.tell(&late[i].heard, late[i].err)
	}
}

// lateText is a text of which the watcher hears at the caller's next call.
type lateText struct {
	heard
	err error
}
