package lease

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
)

const (
	// minRenewed is the shortest lease that is renewed: it leaves time for three tries.
	minRenewed = 100 * time.Millisecond
	// minTTL is the shortest lease: the answer has to arrive within it.
	minTTL = 10 * time.Millisecond
	// maxName is how many bytes a key's name may have.
	maxName = 1024
)

// request is a request for a lease.
type request struct {
	key       lockkey.Key
	token     fence.Token // without a number
	row       string      // in ShedLock's table
	ttl       time.Duration
	atLeast   time.Duration
	timeout   time.Duration
	data      []byte
	noRenewal bool
	slots     int // number of slots of the key; 0: the whole key
	try       bool
	role      role
}

// role is the purpose of a lease. In the row it precedes the name of the acquisition, for people.
type role string

const (
	plain     role = ""
	leader    role = "leader"    // of Lead
	candidate role = "candidate" // of an Elector that leads
	runner    role = "tick"      // of a schedule
)

func (r role) prefix() string {
	switch r {
	case leader, candidate:
		return "leader:"
	case runner:
		return "tick:"
	case plain:
	}
	return ""
}

// as returns the option that sets a role.
func as(wanted role) AcquireOption {
	return acquireOption(func(r *request) error { return holder.Set(&r.role, wanted) })
}

// leastWithin is the shortest bound of a statement that no ctx bounds.
const leastWithin = 5 * time.Second

// within is the bound of one statement that requests the lease. Without it a silent network would block the call for
// ever. An answer that comes later than the length of the lease grants nothing.
func (r *request) within() time.Duration { return withinOf(r.ttl) }

// withinOf is the bound of one statement for a lease of that length.
func withinOf(ttl time.Duration) time.Duration { return min(max(ttl, leastWithin), batchWithin) }

func (r *request) place() holder.Place { return holder.Place{Space: r.token.Space, ID: r.token.ID} }

func newRequest(t *table, key lockkey.Key, ttl time.Duration, opts []AcquireOption) (*request, error) {
	if _, renamed := key.Former(); renamed {
		return nil, fmt.Errorf("%w: %s stands for two locks, and a lease is one row with one token: move its row to the new key, see lockkey.Renamed", ErrOption, key)
	}
	token, err := fence.For(key, 0)
	if err != nil {
		return nil, err
	}
	r := &request{key: key, token: token, ttl: ttl}
	if err := holder.Apply("Acquire", opts, r, AcquireOption.applyAcquire); err != nil {
		return nil, err
	}
	if n := len(key.Name()); n > maxName {
		return nil, fmt.Errorf("%w: the name %s has %d bytes, more than %d", ErrOption, key, n, maxName)
	}
	if err := r.checkTimes(); err != nil || !t.shedlock {
		return r, err
	}
	return r, r.checkForShedLock(t)
}

// checkTimes refuses combinations of options that no option can see alone.
func (r *request) checkTimes() error {
	least := minRenewed
	if r.noRenewal {
		least = minTTL
	}
	switch {
	case r.ttl <= 0:
		return fmt.Errorf("%w: a lease of %s never begins, it must be longer than 0", ErrOption, r.ttl)
	case r.ttl < least:
		return fmt.Errorf("%w: a lease of %s is shorter than %s, the least that can be kept", ErrOption, r.ttl, least)
	case r.atLeast > r.ttl:
		return fmt.Errorf("%w: AtLeast(%s) is longer than the lease of %s, which ends first when its holder dies", ErrOption, r.atLeast, r.ttl)
	}
	if r.role == leader && r.slots > 0 {
		return fmt.Errorf("%w: Lead with Slots: only one can lead, use Do with Slots to run in several processes", ErrOption)
	}
	return nil
}

var errDataInShedLock = errors.New("gormlock: Data: ShedLock's table has no column for it")

func (r *request) checkForShedLock(t *table) error {
	if r.data != nil {
		return fmt.Errorf("%w: %w", ErrOption, cause.Because(errDataInShedLock))
	}
	if r.slots > 0 {
		return fmt.Errorf("%w: Slots: ShedLock's table has one row for a name", ErrOption)
	}
	r.row = shedlockName(r.key)
	if r.row == "" {
		return fmt.Errorf("%w: %s has no name, and ShedLock's table knows locks by name: use lockkey.Of or Named", ErrOption, r.key)
	}
	if n := utf8.RuneCountInString(r.row); t.room > 0 && n > t.room {
		return fmt.Errorf("%w: the name %s has %d characters, the table has room for %d", ErrOption, r.key, n, t.room)
	}
	return nil
}
