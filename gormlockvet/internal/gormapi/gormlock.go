package gormapi

// Carry says what a db carries for the statement that is built on it.
type Carry uint8

// What a db can carry. Waits: a row lock with Try or Timeout. Text: the statement's text was given by Raw. GormLocking:
// GORM's own clause.Locking.
const (
	XactLock Carry = 1 << iota
	RowLock
	Version
	Fence
	Waits
	Text
	GormLocking
)

// Locks reports whether a lock is among it, GORM's own included.
func (c Carry) Locks() bool { return c&(XactLock|RowLock|GormLocking) != 0 }

// OurLocks reports whether a lock of gormlock is among it.
func (c Carry) OurLocks() bool { return c&(XactLock|RowLock) != 0 }

// Ours reports whether anything of gormlock is among it.
func (c Carry) Ours() bool { return c&(XactLock|RowLock|Version|Fence) != 0 }

var scopes = map[string]Carry{
	"WithXactLock": XactLock, "WithRowLock": RowLock, "WithSkipLocked": RowLock,
	"Locking": XactLock, // of a transaction
}

// ScopeCarry returns what the result of a call of f, a scope or an option, puts on a db.
func ScopeCarry(f Func) Carry {
	if f.Pkg != Gormlock || f.Recv != "" {
		return 0
	}
	return scopes[f.Name]
}

var clauses = map[string]Carry{"XactLockClause": XactLock, "RowLockClause": RowLock, "VersionClause": Version, "FenceClause": Fence}

// ClauseCarry returns what a clause of gormlock's type name puts on a db.
func ClauseCarry(name string) Carry { return clauses[name] }

// Call is a function of gormlock that runs statements on the db it is given as its first argument.
type Call struct {
	Locks  bool // takes a lock that its transaction holds afterwards
	Reads  bool // fills the struct that is its second argument from its row
	Writes bool
	Error  int // which result is the error
}

var calls = map[string]Call{
	"AcquireXactLock": {Locks: true},
	"LockRow":         {Locks: true, Reads: true},
	"LockRows":        {Locks: true, Reads: true},
	"VerifyVersion":   {Locks: true, Reads: true},
	"FenceFor":        {Locks: true, Error: 1},
	"FenceTx":         {Locks: true},
	"Touch":           {Writes: true},
	"SaveMerged":      {Writes: true, Reads: true},
	"Claim":           {Locks: true, Writes: true, Error: 1},
	"Once":            {Error: 1},
	"Transaction":     {},
	"MigrateOnce":     {},
	"SweepOnce":       {Writes: true, Error: 1},
	"AutoMigrate":     {},
	"MigrateAll":      {},
}

// CallOf returns what the function of gormlock's root package does.
func CallOf(f Func) (Call, bool) {
	if f.Pkg == Work && f.Recv == "" {
		c, ok := workCalls[f.Name]
		return c, ok
	}
	if f.Pkg != Gormlock || f.Recv != "" {
		return Call{}, false
	}
	c, ok := calls[f.Name]
	return c, ok
}

var workCalls = map[string]Call{
	"Enqueue": {Writes: true}, "Complete": {Writes: true}, "Requeue": {Writes: true, Error: 1}, "Migrate": {}, "New": {Error: 1},
	// What a handler returns: a job for which nobody returns it counts as done.
	"Later": {}, "Dead": {},
}

// MustLook returns the place of the error among the results of a call that acquires, releases, claims or runs under a
// lock, and whether f is one. Releasing calls may drop it in a defer.
func MustLook(f Func) (result int, releases, ok bool) {
	switch {
	case f.Pkg == Gormlock && f.Recv == "" || f.Pkg == Work && f.Recv == "":
		c, known := CallOf(f)
		return c.Error, false, known
	case f.Pkg == Advisory && f.Recv == "" && f.Name == "Acquire", f.Pkg == PgxLock && f.Recv == "":
		return 0, false, true
	case f.Pkg == Work && f.Name == "Run":
		return 0, true, true // it says which handlers did not end in time
	case f.Pkg == Work && f.Name == "Drain":
		return 1, false, true
	case (f.Pkg == SessionLock || f.Pkg == Lease) && f.Recv == "Manager":
		switch f.Name {
		case "Acquire", "TryAcquire", "AcquireAll":
			return 1, false, true
		case "Do", "Lead", "Every":
			return 0, false, true
		}
	case f.Pkg == SessionLock && (f.Recv == "Lock" || f.Recv == "Locks") && f.Name == "Release",
		f.Pkg == Lease && f.Recv == "Lease" && f.Name == "Release":
		return 0, true, true
	case f.Pkg == Lease && f.Recv == "Lease" && f.Name == "Renew":
		return 0, false, true
	}
	return 0, false, false
}

// Handed says what a function that is given to another one receives, and where it stands among the arguments.
type Handed struct {
	Kind Kind
	Fn   int // the argument that is the function; the receiver is not counted
	Base int // the argument that is the outer db or ctx; -1: the receiver
}

// Kind is what runs a function.
type Kind uint8

// The kinds. Transactions hand over a db, the others a ctx; Once hands over the db of the transaction it was given.
const (
	NoKind Kind = iota
	GormTransaction
	LockTransaction
	OnceKind
	DoKind
	WorkKind
)

// HandedTo returns how f runs the function it is given.
func HandedTo(f Func) (Handed, bool) {
	switch f {
	case Func{Gorm, "DB", "Transaction"}, Func{Gorm, "DB", "Connection"}:
		return Handed{GormTransaction, 0, -1}, true
	case Func{Gormlock, "", "Transaction"}:
		return Handed{LockTransaction, 1, 0}, true
	case Func{Gormlock, "", "Once"}:
		return Handed{OnceKind, 2, 0}, true
	case Func{SessionLock, "Manager", "Do"}:
		return Handed{DoKind, 2, 0}, true
	case Func{Lease, "Manager", "Do"}, Func{Lease, "Manager", "Lead"}, Func{Lease, "Manager", "Every"}:
		return Handed{DoKind, 3, 0}, true
	case Func{Work, "", "New"}:
		return Handed{WorkKind, 1, -2}, true
	}
	return Handed{}, false
}
