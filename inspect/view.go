package inspect

import "time"

// View is what [Snapshot] saw. Its JSON form is what the page and the command line
// give out; ids and tokens are strings there, as JavaScript rounds numbers of 64 bits.
type View struct {
	Taken    time.Time  `json:"taken"` // by the clock of the server
	Server   Server     `json:"server"`
	Locks    []Lock     `json:"locks"`    // waiting requests, longest first, then what they wait for, then the rest
	Sessions []*Session `json:"sessions"` // all that Locks or Blockers name, by PID
	Leases   []Lease    `json:"leases"`
	Totals   Totals     `json:"totals"`
	Unseen   []string   `json:"unseen"` // what could not be seen, each with its cure

	Schedules []Schedule `json:"schedules"` // those that fail or are late first
	Jobs      []JobQueue `json:"jobs"`      // of the tables that [Jobs] names
}

// Server is where the snapshot was taken.
type Server struct {
	Version  int       `json:"version"` // server_version_num: 150018
	Database string    `json:"database"`
	Role     string    `json:"role"` // whom the snapshot was taken as
	Standby  bool      `json:"standby"`
	Started  time.Time `json:"started"`
	Room     int       `json:"room"`  // how many locks the server's lock table is sized for, without its reserve
	Locks    int       `json:"locks"` // how many are in it now, of every kind and database
}

// Totals count all there is, in the View or cut from it.
type Totals struct {
	Held    int `json:"held"`    // advisory locks that are held
	Waiting int `json:"waiting"` // requests for locks of any kind that wait
	Cut     int `json:"cut"`     // entries that Locks leaves out
	Leases  int `json:"leases"`

	Schedules int `json:"schedules"`
}

// Kind says what is locked, in the words of pg_locks.locktype.
type Kind string

// The most frequent kinds. A wait for a row shows as a wait for the transaction that
// changed it, and as Tuple for sessions further back in the queue.
const (
	Advisory    Kind = "advisory"
	Transaction Kind = "transactionid"
	Tuple       Kind = "tuple"
	Relation    Kind = "relation"
)

// Scope says what frees a lock when it ends: a session or a transaction.
type Scope string

// If it is not known, the scope is "".
const (
	SessionScope     Scope = "session"
	TransactionScope Scope = "transaction"
)

// Lock is an advisory lock, a request that waits for a lock of any kind, or a lock of any
// kind that such a request waits for.
type Lock struct {
	Thing   string `json:"thing"` // what is locked, the same for all requests for it
	Kind    Kind   `json:"kind"`
	Key     string `json:"key"`            // for people: "invoice/42", "int64(7)", "row of accounts"
	Name    string `json:"name,omitempty"` // of an advisory key, when something names it
	Source  string `json:"name_source,omitempty"`
	Space   int16  `json:"space,omitempty"` // of an advisory key: 1 one bigint, 2 two int4
	ID      int64  `json:"id,string"`       // of an advisory key; of two int4 the first is in the upper half
	Table   string `json:"table,omitempty"` // "" where it can be one of several: Key has them all
	Row     string `json:"row,omitempty"`   // its ctid
	Mode    string `json:"mode"`            // of an advisory key "exclusive" or "shared", else PostgreSQL's word
	Granted bool   `json:"granted"`
	Scope   Scope  `json:"scope,omitempty"`

	// Since is when a request began to wait. The server does not say when a lock was granted. For a lock that is held,
	// Earliest is true, and Since is the beginning of its transaction, or of its session if the session may hold it. Since
	// is zero if it cannot be seen.
	Since    time.Time `json:"since,omitzero"`
	Earliest bool      `json:"earliest,omitempty"`

	Hint    string `json:"hint,omitempty"`     // of a request that waits: what is probably wrong with it, such as db used in place of tx
	HintPID int    `json:"hint_pid,omitempty"` // the session whose transaction Hint is about

	Waiters int   `json:"waiters,omitempty"`     // how many requests wait for the same thing
	Token   int64 `json:"token,string,omitzero"` // the latest fencing token issued for the key

	*Session // who holds it or waits; never nil
}

// Session is a server process, or a prepared transaction (PID 0).
type Session struct {
	PID           int       `json:"pid"`
	Application   string    `json:"application,omitempty"`
	Owner         string    `json:"owner,omitempty"` // of a session lock manager
	User          string    `json:"user,omitempty"`
	Client        string    `json:"client,omitempty"` // address and port, or "local"
	State         string    `json:"state,omitempty"`  // "active", "idle in transaction"; "disabled" where track_activities is off
	Query         string    `json:"query,omitempty"`  // the one that runs, else the last; cut
	Doing         string    `json:"doing,omitempty"`  // Query in words, if it is one of gormlock's own: "takes invoice/42, timeout 3s"
	InTransaction bool      `json:"in_transaction"`
	Started       time.Time `json:"started,omitzero"`
	Began         time.Time `json:"began,omitzero"`       // the transaction
	StateSince    time.Time `json:"state_since,omitzero"` // the query, or what came after it
	Blockers      []int     `json:"blockers,omitempty"`   // whom it waits for, by PID
	Hidden        bool      `json:"hidden,omitempty"`     // it belongs to a role whose doings are not shown to Server.Role
	Gone          bool      `json:"gone,omitempty"`       // it ended while the snapshot was taken
	Prepared      string    `json:"prepared,omitempty"`   // the name of a prepared transaction
}

// Lease is a row of the lease table.
type Lease struct {
	Key      string    `json:"key"`
	Space    int16     `json:"space"` // as of a Lock; of a slot that plus 16 times its number, counted from 1
	ID       int64     `json:"id,string"`
	Owner    string    `json:"owner"`
	Token    int64     `json:"token,string"`
	Acquired time.Time `json:"acquired,omitzero"`
	Expires  time.Time `json:"expires"`
	Expired  bool      `json:"expired"`         // by the clock of the server, at Taken
	Leader   bool      `json:"leader,omitzero"` // it is held by Lead, or for an Elector
	Slot     int       `json:"slot,omitzero"`   // from 0 to Slots-1
	Slots    int       `json:"slots,omitzero"`  // how many of the key can be held at most; 0: it is held whole
}

// Schedule is a row of the table of lease's Every.
type Schedule struct {
	Key      string    `json:"key"`
	Space    int16     `json:"space"` // as of a Lock
	ID       int64     `json:"id,string"`
	Owner    string    `json:"owner"`             // who began the last run; before the first, who came first
	Last     time.Time `json:"last,omitzero"`     // the last tick that was done
	Next     time.Time `json:"next,omitzero"`     // the tick after the last that was begun: past, where nobody has looked after it since
	Tick     time.Time `json:"tick,omitzero"`     // the one that was begun, and is neither done nor given up
	Running  bool      `json:"running,omitzero"`  // a run of Tick is on
	Attempts int       `json:"attempts,omitzero"` // runs of Tick that were begun
	Retry    time.Time `json:"retry,omitzero"`    // when Tick is run again, after a run that failed
	Failures int64     `json:"failures"`          // runs that failed since a tick was done
	Problem  string    `json:"problem,omitzero"`  // the error of the last of them
}

// ScheduleState is where a schedule stands.
type ScheduleState string

// The states of a schedule.
const (
	ScheduleWaits    ScheduleState = "waits"    // for the next tick
	ScheduleRuns     ScheduleState = "runs"     // a run of the tick is on
	ScheduleRetries  ScheduleState = "retries"  // a run failed, and another one follows
	ScheduleOrphaned ScheduleState = "orphaned" // the process of the last run is gone, or lost its lease
	ScheduleOverdue  ScheduleState = "overdue"  // a tick or a retry has come, and nobody has begun it
)

// overdueAfter is how late a run may begin without a word: longer than processes wait between two looks.
const overdueAfter = 5 * time.Second

// State is where the schedule stands at the time now, that of the server: [View.Taken].
func (s *Schedule) State(now time.Time) ScheduleState {
	due := s.Next
	if !s.Tick.IsZero() {
		due = s.Retry
	}
	switch {
	case s.Running:
		return ScheduleRuns
	case !due.IsZero() && now.Sub(due) > overdueAfter:
		return ScheduleOverdue
	case s.Tick.IsZero():
		return ScheduleWaits
	case s.Retry.IsZero():
		return ScheduleOrphaned
	}
	return ScheduleRetries
}

// Session returns the session with this PID, or nil if the view does not have it.
func (v *View) Session(pid int) *Session {
	for _, s := range v.Sessions {
		if s.PID == pid {
			return s
		}
	}
	return nil
}

// Seen reports whether nothing was cut and nothing was hidden.
func (v *View) Seen() bool { return v.Totals.Cut == 0 && len(v.Unseen) == 0 }
