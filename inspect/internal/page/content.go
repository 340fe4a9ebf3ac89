// Package page is what the page of package inspect looks like: a template, a style, a script, the drawing of who waits
// for whom, and the plots of the last minutes.
//
// It does not know databases. [Write] makes HTML of a [Content], whose texts are ready to be read.
package page

import "time"

// Content is what the page shows at one moment.
type Content struct {
	Refresh time.Duration
	Failure string        // why the database does not answer, "" when it does
	Silent  time.Duration // for how long it does not
	Done    string        // what the visitor's last form did
	Token   string        // what his forms repeat; "" where he may end nothing
	Seen    *Seen         // the last that was seen, nil while nothing was
}

// Seen is what one look at the database gave.
type Seen struct {
	Where   Where
	Unseen  []string // what the role may not see
	Counts  Counts
	History []Sample
	Graph   []*Node // who waits for whom
	Waits   []Row
	Held    []Row
	Leases  []Lease

	Schedules []Schedule
	Jobs      []Jobs
}

// Where is the server that was looked at.
type Where struct {
	Taken    time.Time
	Database string
	Version  int // server_version_num
	Role     string
	Standby  bool
}

// Counts are the numbers at the top of the page, and of what it leaves out.
type Counts struct {
	Held, Waiting int
	Longest       time.Duration // of the waits
	Blocking      int           // sessions that others wait for and that wait for nobody
	Rings         int           // sessions that wait in a circle
	Full          int           // percent of the lock table
	TableEmpty    bool
	Cut           int
	Leases        int
	Schedules     int
}

// Row is a lock that is held or waited for.
type Row struct {
	Thing   string // the same for all rows of one lock
	Key     string
	About   string // mode, scope, token, in small print
	Age     string
	AgeNote string // what the age is the age of, where that is not the lock's
	Hint    string // what is probably wrong with the wait
	Session Session
	Behind  []int // whom it waits for, by process; 0 is a prepared transaction
	Waiters int
}

// Session is who holds a lock or waits for it.
type Session struct {
	PID     int // 0: a prepared transaction
	Name    string
	About   string // role, address, state, in small print
	Doing   string // the query in words, "" where it says enough itself
	Query   string
	Started time.Time // zero where it may not be ended from here

	Statement time.Time // since when its query runs, zero where there is none to cancel
}

// Lease is a row of the lease table.
type Lease struct {
	Key, Owner string
	Expired    bool
	Leader     bool
	Age, Left  string
	Token      int64
	Slot       int
	Slots      int // 0: it is held whole
}

// Schedule is a row of the table of schedules.
type Schedule struct {
	Key, Owner       string
	State            string
	Last, Next       time.Time // the last tick that was done; the next one, or the one that was begun
	LastAge, NextAge string
	Try              int // which run of Next it is, 0 where none was begun
	Failures         int64
	Problem          string
}

// Jobs are those of a queue.
type Jobs struct {
	Table, Queue                string
	Ready, Running, Later, Dead int64
	Oldest                      string
	Died                        string // the error of the job that died last
}

// Bad reports whether somebody should look at the schedule.
func (s Schedule) Bad() bool { return s.Failures > 0 || s.State == "overdue" || s.State == "orphaned" }

// Node is a session in the graph.
type Node struct {
	PID      int
	Title    string
	What     string // what it wants or holds
	Detail   string
	Query    string
	Waits    bool
	Ring     bool // it waits for itself through others
	Blockers []int
	Waiters  []*Node
}

// Sample is what was seen at one look.
type Sample struct {
	Taken   time.Time
	Waiting int
	Begun   float64 // waits that began, for each second
	Longest time.Duration
	GaveUp  int
	Gap     bool // there was no look before it, or it failed
}

// CanEnd reports whether the row has a form that ends its session.
func (s Session) CanEnd() bool { return s.PID != 0 && !s.Started.IsZero() }
