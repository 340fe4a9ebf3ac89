package sqltx

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
)

// Status is the state of the session's transaction, which the server reports with each answer.
type Status byte

// The states, with the letters of the protocol. Unknown: the driver does not report them.
const (
	Unknown Status = 0
	Idle    Status = 'I'
	Open    Status = 'T'
	Aborted Status = 'E'
	Gone    Status = 'X' // not in the protocol: the connection is closed, and no transaction on it can be committed any more
)

// wire is a connection to the server: that of pgx. It answers without asking the server.
type wire interface {
	TxStatus() byte
	IsClosed() bool
	PID() uint32                // of the server's process, as the driver was told when it connected
	CustomData() map[string]any // lives as long as the session
}

// wireUnder finds the wire under a driver's connection. It calls pgx's methods Conn and PgConn by their names, because their
// types belong to the driver. It returns nil if there is none.
func wireUnder(conn any) wire {
	wire, _ := answer(sessionUnder(conn).MethodByName("PgConn")).(wire)
	return wire
}

// cachesStatements reports whether the driver prepares each statement with arguments and keeps it. pgx does by default. Programs
// turn it off for servers and poolers that lose prepared statements.
func cachesStatements(conn any) bool { return modeOf(conn) == "cache statement" }

// maySpeakSimply reports whether the driver may send statements in the simple protocol: see [ErrUnheard]. One that is not known may be a wrapper that
// hides pgx, as programs write them to trace statements.
func maySpeakSimply(conn any) bool {
	mode := modeOf(conn)
	return mode == "" || mode == "simple protocol"
}

// modeOf is how pgx sends queries, empty for another driver.
func modeOf(conn any) string {
	config := reflect.Indirect(reflect.ValueOf(answer(sessionUnder(conn).MethodByName("Config"))))
	if config.Kind() != reflect.Struct {
		return ""
	}
	mode := config.FieldByName("DefaultQueryExecMode")
	if !mode.IsValid() || !mode.CanInterface() {
		return ""
	}
	return fmt.Sprint(mode.Interface())
}

// nothing has no methods.
type nothing struct{}

func sessionUnder(conn any) reflect.Value {
	for range 4 { // so many drivers may be wrapped around each other
		wrapper, ok := conn.(interface{ Raw() driver.Conn })
		if !ok {
			break
		}
		conn = wrapper.Raw()
	}
	if conn != nil {
		if session := answer(reflect.ValueOf(conn).MethodByName("Conn")); session != nil {
			return reflect.ValueOf(session)
		}
	}
	return reflect.ValueOf(nothing{})
}

// answer returns the result of a method without arguments, nil where there is none.
func answer(method reflect.Value) any {
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 {
		return nil
	}
	result := method.Call(nil)[0]
	if result.Kind() == reflect.Interface {
		result = result.Elem()
	}
	if result.Kind() != reflect.Pointer || result.IsNil() {
		return nil
	}
	return result.Interface()
}

// fewWires is how many wires are always kept.
const fewWires = 64

// wireOf is wireUnder, remembered for each connection. The pool does not hear when a connection is closed, so it forgets all
// wires when there are too many.
func (p *Pool) wireOf(conn driver.Conn) wire {
	if reflect.TypeOf(conn).Kind() != reflect.Pointer {
		return wireUnder(conn)
	}
	if known, ok := p.wires.Load(conn); ok {
		return known.(found).wire //nolint:forcetypeassert // nothing else is stored
	}
	if int(p.wireCount.Add(1)) > max(fewWires, 2*p.db.Stats().OpenConnections) {
		p.forgetWires()
	}
	under := wireUnder(conn)
	p.wires.Store(conn, found{under})
	return under
}

func (p *Pool) forgetWires() {
	p.wires.Clear()
	p.wireCount.Store(0)
}

// found is the result of a search for a wire, nil if there is none.
type found struct{ wire }

// StatusOf asks the driver for the status of a connection. It is Unknown if the driver does not report it.
func StatusOf(conn *sql.Conn) (status Status) {
	_ = conn.Raw(func(driverConn any) error {
		if wire := wireUnder(driverConn); wire != nil {
			status = Status(wire.TxStatus())
		}
		return nil
	})
	return status
}
