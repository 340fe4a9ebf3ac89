package lease

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/holder"
)

// store is the table of the leases on its server. It has one method for each thing that is done to the table, which is
// one statement, and keeps nothing.
type store struct {
	*server
	*table
}

// claim is one acquisition as the table knows it.
type claim struct {
	token  fence.Token // its Number is 0 until it is granted
	row    string      // the name of the row in ShedLock's table
	holder string      // names the acquisition, as nothing else does
}

func (c claim) place() holder.Place { return holder.Place{Space: c.token.Space, ID: c.token.ID} }

// inSlot is the claim of a slot, counted from 1: it has a space, and so tokens, of its own. The slot 0 is the whole key.
func (c claim) inSlot(n int) claim {
	if n > 0 {
		c.token.Space += int16(slotStep * n)
		c.token.Name += fmt.Sprintf(" slot %d", n-1)
	}
	return c
}

// slotStep is between the spaces of two slots of a key.
const slotStep = 16

// keyOf is the place of the key that a slot, or the whole of it, belongs to.
func keyOf(at holder.Place) holder.Place { return holder.Place{Space: at.Space % slotStep, ID: at.ID} }

// item is a claim in a list that a statement works off, with a span of time: the length of the lease to take or to renew,
// or the AtLeast of the one to release.
type item struct {
	claim
	span time.Duration
}

// holderLength is how long the name of an acquisition is: 80 bits of chance.
const holderLength = 16

// newClaim is a claim under a name that no other acquisition has.
func (s *store) newClaim(r *request) claim {
	c := claim{token: r.token, row: r.row, holder: rand.Text()[:holderLength]}
	if s.shedlock {
		c.holder = s.owner + holderMark + c.holder
	} else {
		c.holder = r.role.prefix() + c.holder
	}
	return c
}

// answer is what the server says to who asks for a lease.
type answer struct {
	number  int64   // of the token; 0: refused
	owner   *string // who has it; nil when the answer does not say: a race was lost
	remains time.Duration
	marked  bool // the release will be notified
	slot    int  // from 1, when one was granted
	held    int  // slots of others, when they are why nothing was
}

func (a *answer) granted() bool { return a.number != 0 }

func (a *answer) refused() bool { return a.number == 0 && a.owner != nil }

// aCentury is longer than a lease runs: what does is the row of a key that is held by slots.
const aCentury = 100 * 365 * 24 * time.Hour

// bySlots reports whether slots stand in the way, which the statement for the whole key does not see.
func (a *answer) bySlots() bool { return a.refused() && a.remains > aCentury }

func (a *answer) String() string {
	if a.held > 1 {
		return fmt.Sprintf("%d hold slots of it; the first that would run out is that of %q, in %s", a.held, *a.owner, a.remains)
	}
	return fmt.Sprintf("%q holds it for %s if it is not renewed", *a.owner, a.remains)
}

// acquire asks for one lease; listened, whoever has it is asked to notify of the release.
func (s *store) acquire(ctx context.Context, r *request, c claim, listened bool) (a answer, sent holder.Instant, err error) {
	text := s.sql.acquire
	if listened {
		text = s.sql.acquireListened
	}
	sent, err = s.query(ctx, text, s.acquireArgs(r, c), func(rows *sql.Rows) error {
		var owner string
		var remains int64
		if err := rows.Scan(&a.number, &owner, &remains, &a.marked); err != nil {
			return err
		}
		if !a.granted() {
			if s.shedlock {
				owner = shedlockOwner(owner)
			}
			a.owner, a.remains = &owner, microseconds(remains)
		}
		return nil
	})
	return a, sent, err
}

// acquireSlot asks for a slot, or for the whole key where slots stand in the way.
func (s *store) acquireSlot(ctx context.Context, r *request, c claim, listened bool) (a answer, sent holder.Instant, err error) {
	text, args := s.sql.acquireAll, s.acquireArgs(r, c)
	if listened {
		text = s.sql.acquireAllListened
	}
	if r.slots > 0 {
		text, args = s.sql.acquireSlot, append(args, r.slots)
		if listened {
			text = s.sql.acquireSlotListened
		}
	}
	sent, err = s.query(ctx, text, args, func(rows *sql.Rows) error {
		var owner string
		var remains int64
		var n int
		if err := rows.Scan(&a.number, &owner, &remains, &a.marked, &n); err != nil {
			return err
		}
		if a.granted() {
			a.slot = n
			return nil
		}
		a.owner, a.remains, a.held = &owner, microseconds(remains), n
		return nil
	})
	return a, sent, err
}

// acquireMany asks for many leases and answers the calls that nothing stood in the way of, or somebody else's lease.
func (s *store) acquireMany(ctx context.Context, batch []*call) (sent holder.Instant, err error) {
	return s.query(ctx, s.sql.acquireMany, s.acquireManyArgs(itemsOf(batch)), func(rows *sql.Rows) error {
		var n int
		var at holder.Place
		var number, remains int64
		var owner string
		if err := rows.Scan(&n, &at.Space, &at.ID, &number, &owner, &remains); err != nil {
			return err
		}
		if n > 0 {
			batch[n-1].answered = true
			batch[n-1].answer = answer{owner: &owner, remains: microseconds(remains)}
			return nil
		}
		for _, c := range batch {
			if c.place() == at {
				c.answered, c.answer = true, answer{number: number}
			}
		}
		return nil
	})
}

// renewed is what a renewal found.
type renewed uint8

const (
	renewedInTime renewed = iota
	rowLocked             // by somebody; it is held
	rowGone               // it ran out, or is somebody else's
)

// renew renews leases for their spans.
func (s *store) renew(ctx context.Context, items []item) (found []renewed, sent holder.Instant, err error) {
	found = make([]renewed, len(items))
	sent, err = s.query(ctx, s.sql.renew, s.listArgs(items), func(rows *sql.Rows) error {
		var n int
		var there bool
		if err := rows.Scan(&n, &there); err != nil {
			return err
		}
		found[n-1] = rowGone
		if there {
			found[n-1] = rowLocked
		}
		return nil
	})
	return found, sent, err
}

// release gives leases back and returns which of them were there.
func (s *store) release(ctx context.Context, items []item) (there []int, err error) {
	text, args := s.sql.releaseMany, s.listArgs(items)
	if len(items) == 1 {
		text, args = s.sql.release, s.releaseArgs(items[0])
	}
	for range 10 {
		there = there[:0]
		_, err = s.query(ctx, text, args, func(rows *sql.Rows) error {
			n, err := scanReleased(rows)
			there = append(there, n)
			return err
		})
		if !isRetry(err) {
			return there, err
		}
	}
	return there, err
}

// releaseMany gives back those whose rows nobody has locked, and answers their calls.
func (s *store) releaseMany(ctx context.Context, batch []*call) (sent holder.Instant, err error) {
	return s.query(ctx, s.sql.releaseFree, s.listArgs(itemsOf(batch)), func(rows *sql.Rows) error {
		n, err := scanReleased(rows)
		if err == nil {
			batch[n].answered = true
		}
		return err
	})
}

// scanReleased reads which of a list was released.
func scanReleased(rows *sql.Rows) (int, error) {
	var n int
	var notified sql.NullString
	err := rows.Scan(&n, &notified)
	return n - 1, err
}

// holder reads who has a lease.
func (s *store) holder(ctx context.Context, c claim) (h Holder, held bool, err error) {
	_, err = s.query(ctx, s.sql.holder, s.keyArgs(c), func(rows *sql.Rows) error {
		held = true
		var since, remains int64
		if err := rows.Scan(&h.Owner, &h.Data, &since, &remains); err != nil {
			return err
		}
		h.Held, h.Remains = microseconds(since), microseconds(remains)
		return nil
	})
	if s.shedlock {
		h.Owner = shedlockOwner(h.Owner)
	}
	return h, held, err
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
