package install

import (
	"sync"
	"sync/atomic"
	"time"
)

// Learned is what servers have said about the tables, views and functions that names stand for. The zero value is ready.
type Learned struct {
	answers sync.Map    // Question → answer
	some    atomic.Bool // there may be answers
	roaming sync.Map    // database → nothing: its connections may have different search_paths
}

// Question is a question about a name.
type Question struct {
	Database any // the *sql.DB, or what represents it: it also determines the search_path with which connections begin
	Asks     string
	Name     string
}

// Answer is a server's answer, and when it was given. Another session may rename a table, or replace it by a view, and we are not told.
type Answer struct {
	value any
	at    time.Time
}

// fresh is how long an answer holds.
const fresh = time.Minute

// NewAnswer is an answer that is given now.
func NewAnswer(value any) Answer { return Answer{value, time.Now()} }

// Value is the answer, unless it is too old.
func (a Answer) Value() (value any, is bool) {
	return a.value, !a.at.IsZero() && time.Since(a.at) < fresh
}

// Answer returns the server's answer to a question.
func (l *Learned) Answer(q Question) (value any, is bool) {
	found, _ := l.answers.Load(q)
	answer, _ := found.(Answer)
	return answer.Value()
}

// Keep keeps an answer.
func (l *Learned) Keep(q Question, value any) {
	l.answers.Store(q, NewAnswer(value))
	l.some.Store(true)
}

// Forget forgets all answers: names may stand for other tables.
func (l *Learned) Forget() {
	if l.some.Swap(false) {
		l.answers.Clear()
	}
}

// Roam notes that connections of a database may have a search_path other than the one they began with.
func (l *Learned) Roam(database any) { l.roaming.Store(database, nil) }

// Roams reports whether Roam has noted that.
func (l *Learned) Roams(database any) bool {
	_, is := l.roaming.Load(database)
	return is
}
