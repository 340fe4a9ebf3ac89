package lease

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/sift"
)

// store reads and writes the table of the leases: one method for each statement. It has no state.
type store struct {
	*server
	*table
}

// claim is one acquisition, as it is stored in the table.
type claim struct {
	token  fence.Token // its Number is 0 until it is granted
	row    string      // the name of the row in ShedLock's table
	holder string      // the unique name of the acquisition
}

func (c claim) place() holder.Place { return holder.Place{Space: c.token.Space, ID: c.token.ID} }

// inSlot returns the claim of a slot, counted from 1. A slot has its own space, and so its own tokens. Slot 0 is the whole key.
func (c claim) inSlot(n int) claim {
	if n > 0 {
		c.token.Space += int16(slotStep * n)
		c.token.Name += fmt.Sprintf(" slot %d", n-1)
	}
	return c
}

// slotStep is the difference between the spaces of two neighbouring slots of a key.
const slotStep = 16

// keyOf returns the place of the key to which a slot belongs.
func keyOf(at holder.Place) holder.Place { return holder.Place{Space: at.Space % slotStep, ID: at.ID} }

// item is a claim in a list, with a span of time. The span is the length of a lease to take or renew, or the AtLeast of a
// lease to release.
type item struct {
	claim
	span time.Duration
}

// holderLength is the length of an acquisition's name: 80 random bits.
const holderLength = 16

// newClaim returns a claim with a name that no other acquisition has.
func (s *store) newClaim(r *request) claim {
	c := claim{token: r.token, row: r.row, holder: rand.Text()[:holderLength]}
	if s.shedlock {
		c.holder = s.owner + holderMark + c.holder
	} else {
		c.holder = r.role.prefix() + c.holder
	}
	return c
}

// answer is the server's answer to a request for a lease.
type answer struct {
	number  int64   // of the token; 0: refused
	owner   *string // who has it; nil: not known, because a race was lost
	remains time.Duration
	marked  bool // the release will be notified
	slot    int  // from 1, when one was granted
	bySlots bool // slots are in the way, which the statement for the whole key does not see
	held    int  // slots that others hold, if the request was refused because of them
}

func (a *answer) granted() bool { return a.number != 0 }

func (a *answer) refused() bool { return a.number == 0 && a.owner != nil }

func (a *answer) String() string {
	if a.held > 1 {
		return fmt.Sprintf("%d hold slots of it; the first that would run out is that of %q, in %s", a.held, *a.owner, a.remains)
	}
	return fmt.Sprintf("%q holds it for %s if it is not renewed", *a.owner, a.remains)
}

// acquire requests one lease. With listened it also asks the holder to notify of the release.
func (s *store) acquire(ctx context.Context, r *request, c claim, listened bool) (a answer, sent holder.Instant, err error) {
	text := s.sql.acquire
	if listened {
		text = s.sql.acquireListened
	}
	sent, err = s.query(ctx, text, s.acquireArgs(r, c), func(rows *sql.Rows) error {
		var owner string
		var remains int64
		if err := rows.Scan(&a.number, &owner, &remains, &a.marked, &a.bySlots); err != nil {
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

// acquireFreed requests a lease that is probably free. If it is not free, there is no answer.
func (s *store) acquireFreed(ctx context.Context, r *request, c claim, _ bool) (a answer, sent holder.Instant, err error) {
	sent, err = s.query(ctx, s.sql.acquireFreed, s.acquireArgs(r, c)[:6], func(rows *sql.Rows) error { return rows.Scan(&a.number) })
	return a, sent, err
}

// acquireSlot requests a slot, or the whole key if slots are in the way.
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

// acquireMany requests many leases. It answers the calls that got their lease or found it taken.
func (s *store) acquireMany(ctx context.Context, batch []*call) (sent holder.Instant, err error) {
	return s.query(ctx, s.sql.acquireMany, s.acquireManyArgs(itemsOf(batch)), func(rows *sql.Rows) error {
		var n int
		var at holder.Place
		var number, remains int64
		var owner string
		var bySlots bool
		if err := rows.Scan(&n, &at.Space, &at.ID, &number, &owner, &remains, &bySlots); err != nil {
			return err
		}
		if n > 0 {
			batch[n-1].answered = true
			batch[n-1].answer = answer{owner: &owner, remains: microseconds(remains), bySlots: bySlots}
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

// renewed is the result of a renewal.
type renewed uint8

const (
	renewedInTime renewed = iota
	rowLocked             // by another session; the lease is still held
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

// release releases leases, and returns the numbers of those that it found. A row that the server refuses to change does not keep the other leases
// from being released. failed is how many were not released, and err is the first error.
func (s *store) release(ctx context.Context, items []item) (there []int, failed int, err error) {
	numbers := make([]int, len(items))
	for i := range items {
		numbers[i] = i
	}
	var found []int
	release := func(part []int) (err error) {
		found, err = s.releaseThese(ctx, items, part)
		return err
	}
	sift.Parts(ctx, numbers, release, func(part []int, refused error) bool {
		if refused != nil {
			failed += len(part)
			err = cmp.Or(err, refused)
			return true
		}
		there = append(there, found...)
		return true
	})
	return there, failed, err
}

// releaseThese releases the items with these numbers, and returns which of them it found.
func (s *store) releaseThese(ctx context.Context, items []item, numbers []int) (there []int, err error) {
	if len(numbers) == 1 {
		done, err := s.releaseOne(ctx, items[numbers[0]])
		if done {
			there = numbers
		}
		return there, err
	}
	these := make([]item, len(numbers))
	for i, n := range numbers {
		these[i] = items[n]
	}
	args := s.listArgs(these)
	for range releaseTries {
		there = there[:0]
		_, err = s.query(ctx, s.sql.releaseMany, args, func(rows *sql.Rows) error {
			n, err := scanReleased(rows)
			if err == nil {
				there = append(there, numbers[n])
			}
			return err
		})
		if !isRetry(err) {
			return there, err
		}
	}
	return there, err
}

// releaseTries is how often a release is sent if it conflicts with other transactions.
const releaseTries = 10

// releaseOne releases a lease and reports whether it found it. If an answer is lost, it asks again, and finds the lease only if it is still there.
func (s *store) releaseOne(ctx context.Context, it item) (there bool, err error) {
	args := s.releaseArgs(it)
	var lost error
	for range releaseTries {
		var n int64
		n, err = s.exec(ctx, s.sql.release, args)
		switch {
		case err == nil && n == 0:
			return false, lost
		case err == nil:
			return true, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			lost = err
		case !isRetry(err):
			return false, err
		}
	}
	return false, err
}

// releaseMany releases the leases whose rows nobody has locked, and answers their calls.
func (s *store) releaseMany(ctx context.Context, batch []*call) (sent holder.Instant, err error) {
	return s.query(ctx, s.sql.releaseFree, s.listArgs(itemsOf(batch)), func(rows *sql.Rows) error {
		n, err := scanReleased(rows)
		if err == nil {
			batch[n].answered = true
		}
		return err
	})
}

// scanReleased reads which leases of a list were released.
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

// microseconds is a span of time that the server measured, as far as a Duration holds it.
func microseconds(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Microsecond))) * time.Microsecond
}
