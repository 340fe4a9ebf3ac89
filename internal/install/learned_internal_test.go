package install

import (
	"testing"
	"time"
)

// We are not told what other programs do to a table, so an answer expires.
func TestAnswer_isAskedForAgain(t *testing.T) {
	t.Parallel()
	var l Learned
	q := Question{Database: &l, Asks: "lockable", Name: "accounts"}
	l.Keep(q, true)
	if value, is := l.Answer(q); !is || value != true {
		t.Errorf("%v, %v", value, is)
	}
	if _, is := l.Answer(Question{Database: &q, Asks: q.Asks, Name: q.Name}); is {
		t.Error("it is the answer of another database")
	}
	if _, is := (Answer{true, time.Now().Add(-fresh)}).Value(); is {
		t.Error("an old answer holds")
	}
	l.Forget()
	if _, is := l.Answer(q); is {
		t.Error("it is not forgotten")
	}
}
