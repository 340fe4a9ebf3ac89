package lease

import "github.com/gormlock/gormlock/internal/tokens"

// statements are what a kind of table is written to by, one for each thing that is done.
// All parameters are cast and lists are text, so that every driver and the simple
// protocol can send them; all times are those of the database, as of the start of the
// statement. [store] sends them.
type statements struct {
	// acquire takes one lease and issues its token. One row: the token (0: refused); the owner, the microseconds that the
	// lease still runs, and whether its release will be notified. No row: a race was lost, ask again.
	acquire string
	// acquireListened puts down that the release is to be notified as well. There is none
	// for ShedLock's table.
	acquireListened string
	// acquireMany takes those of many leases that nothing stands in the way of. Its rows are which, and those of acquire.
	// There is none for ShedLock's table.
	acquireMany string
	// renew renews many, given their lengths. Its rows are those that were not
	// renewed: which, and whether that is because somebody had the row locked.
	renew string
	// release gives one back, and releaseMany many, given the AtLeast of each. Their rows are those that were there. Whoever
	// asked for it is notified.
	release, releaseMany string
	// releaseFree is releaseMany without those whose rows somebody has locked. There is none
	// for ShedLock's table.
	releaseFree string
	// holder reads one: owner, data, microseconds since it was acquired and still to run.
	holder string

	// acquireSlot takes a slot, and acquireAll the whole key after slots. Their rows are those of acquire, with the number
	// of the slot, from 1, or how many slots are held. There are none for ShedLock's table.
	acquireSlot, acquireSlotListened string
	acquireAll, acquireAllListened   string
}

// durable makes the transaction wait for its commit: a renewal undone by a crash would end
// a lease whose holder believes in it.
const durable = `durable AS MATERIALIZED (` + tokens.Durable + `)`

var issueFromMine = tokens.IssueFrom("mine")
