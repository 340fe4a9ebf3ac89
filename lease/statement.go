package lease

import "github.com/gormlock/gormlock/internal/tokens"

// statements are the statements for one kind of table. All parameters are cast and lists are text, so every driver and
// the simple protocol can send them. All times are those of the database, at the start of the statement. [store] sends
// them.
type statements struct {
	// acquire takes one lease and issues its token. It returns one row: the token (0: refused), the owner, for how many
	// microseconds the lease still runs, and whether its release will be notified. No row means that a race was lost: ask
	// again.
	acquire string
	// acquireFreed does the same for a key that was leased before, if it is free. It returns the token, or no row: acquire
	// knows why. ShedLock's table has no such statement.
	acquireFreed string
	// acquireListened does the same, and if the lease is taken it asks for a notification of the release. ShedLock's
	// table has no such statement.
	acquireListened string
	// acquireMany takes many leases, but only keys that are free and unlocked. Each of its rows is the number of the lease, and the row of acquire.
	// ShedLock's table has no such statement.
	acquireMany string
	// renew renews many leases for their lengths. It returns those that were not renewed, and whether somebody had the
	// row locked.
	renew string
	// release releases one lease, and releaseMany many, with the AtLeast of each. The number of changed rows says whether release found the lease;
	// releaseMany returns the leases that it found. Waiters that asked for a notification get one.
	release, releaseMany string
	// releaseFree is releaseMany without the leases whose rows somebody has locked. ShedLock's table has no such
	// statement.
	releaseFree string
	// holder reads one lease: the owner, the data, for how many microseconds it has been held, and for how many it still
	// runs.
	holder string

	// acquireSlot takes a slot, and acquireAll the whole key after slots. Their rows are those of acquire, with the
	// number of the slot, from 1, or how many slots are held. ShedLock's table has no such statements.
	acquireSlot, acquireSlotListened string
	acquireAll, acquireAllListened   string
}

// durable makes the transaction wait for its commit. If a crash undid a renewal, the lease would end while its holder
// still relies on it.
const durable = `durable AS MATERIALIZED (` + tokens.Durable + `)`

var issueFromMine = tokens.IssueFrom("mine")
