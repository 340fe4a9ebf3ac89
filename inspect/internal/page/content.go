// Package page is how the page of package inspect looks: a template, a style, a script, the drawing of who waits for whom, and the plots of the
// last minutes.
//
// It knows nothing about databases. [Write] makes HTML of a [Content], whose texts are ready to be read.
package page

import "time"

// Content is what the page shows at one moment.
type Content struct {
	Refresh time.Duration
	Failure string        // why the database does not answer, "" if it does
	Silent  time.Duration // how long the database has not answered
	Done    string        // what the visitor's last form did
	Token   string        // the forms must repeat it; "" if the visitor may end nothing
	Seen    *Seen         // the last result, nil if there is none yet
}

// Seen is the result of one look at the database.
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

// Where is the server of the look.
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
	Full          int           // percent of the lock table that is used
	TableEmpty    bool
	Cut           int
	Leases        int
	Schedules     int
}

// Row is a lock that is held or waited for.
type Row struct {
	Thing   string // the same for all rows of one lock
	Key     string
	About   string // mode, scope, token, in small letters
	Age     string
	AgeNote string // which age is shown, if it is not the lock's
	Hint    string // what is probably wrong with the wait
	Session Session
	Behind  []int // the processes that it waits for; 0 is a prepared transaction
	Waiters int
}

// Session is a session that holds a lock or waits for it.
type Session struct {
	PID     int // 0: a prepared transaction
	Name    string
	About   string // role, address, state, in small letters
	Doing   string // the query in words, "" if the query itself is clear
	Query   string
	Started time.Time // zero if it cannot be ended from here

	Statement time.Time // when its query began, zero if there is none to cancel
}

// Lease is a row of the lease table.
type Lease struct {
	Key, Owner string
	Expired    bool
	Leader     bool
	Age, Left  string
	Token      int64
	Slot       int
	Slots      int // 0: the whole key is held
}

// Schedule is a row of the table of schedules.
type Schedule struct {
	Key, Owner       string
	State            string
	Last, Next       time.Time // the last tick that was done; the next one, or the one that was begun
	LastAge, NextAge string
	Try              int // which run of Next it is, 0 if none was begun
	Failures         int64
	Problem          string
}

// Jobs are the jobs of a queue.
type Jobs struct {
	Table, Queue                string
	Ready, Running, Later, Dead int64
	Oldest                      string
	Died                        string // the error of the last job that died
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

// Sample is the result of one look, for the plots.
type Sample struct {
	Taken   time.Time
	Waiting int
	Begun   float64 // waits that began, per second
	Longest time.Duration
	GaveUp  int
	Gap     bool // there was no look before it, or that one failed
}

// CanEnd reports whether the row has a form that ends its session.
func (s Session) CanEnd() bool { return s.PID != 0 && !s.Started.IsZero() }
