package inspect

import (
	"testing"
	"time"
)

// Two sessions belong to the same program if client address, without the port, application and role are all the same.
func TestWaitsForItself_onlyOfTheSameProgram(t *testing.T) {
	t.Parallel()
	began := time.Unix(100, 0)
	session := func(client string) *Session {
		return &Session{Client: client, Application: "shop", User: "app", State: "idle in transaction", StateSince: began.Add(-time.Second)}
	}
	for _, c := range []struct {
		name   string
		waiter string
		holder *Session
		want   bool
	}{
		{"another port of one host", "10.0.0.1:5000", session("10.0.0.1:6000"), true},
		{"IPv6", "fe80::1:5000", session("fe80::1:6000"), true},
		{"a local socket", "local", session("local"), true},
		{"another host", "10.0.0.1:5000", session("10.0.0.2:5000"), false},
		{"another host, IPv6", "fe80::1:5000", session("fe80::2:5000"), false},
		{"an address that cannot be seen", "", session(""), false},
		{"another role", "local", &Session{Client: "local", Application: "shop", User: "admin", State: "idle in transaction"}, false},
		{"a prepared transaction", "local", &Session{Prepared: "transfer"}, false},
	} {
		l := &Lock{Since: began, Session: &Session{Client: c.waiter, Application: "shop", User: "app", State: "active"}}
		if got := waitsForItself(l, c.holder); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
