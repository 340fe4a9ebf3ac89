package lockrequest

import (
	"fmt"
	"slices"
	"time"

	"github.com/gormlock/gormlock/internal/lookalike"
	"github.com/gormlock/gormlock/lockkey"
)

// Request is a checked call: the locks in the order in which they are taken, and how to wait for them. It is
// immutable, and safe for use by any number of goroutines.
type Request struct {
	locks         []lock
	try           bool
	timeout       time.Duration // 0: as the session waits
	allowSnapshot bool
	servers       []string // look-alikes of PostgreSQL that are allowed, by name
}

// Terms says how the locks of one call are taken. The zero value takes them exclusively, and waits as the session waits.
type Terms struct {
	Shared        bool
	Try           bool
	Timeout       time.Duration // 0: as the session waits
	AllowSnapshot bool
	Servers       []string // look-alikes of PostgreSQL that are allowed, by name
	AllowPooler   bool     // for session locks: allow a pooler, which must be in session mode
}

// Option changes the terms, or returns why it cannot. The set is closed: [OptionFunc] makes one.
type Option interface {
	apply(*Terms) error
}

// OptionFunc makes a function an [Option].
type OptionFunc func(*Terms) error

func (f OptionFunc) apply(t *Terms) error { return f(t) }

type lock struct {
	key    lockkey.Key
	shared bool
}

// New checks keys and options. No key, an invalid key and options that exclude each other are errors.
func New(keys []lockkey.Key, opts ...Option) (*Request, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: no keys to lock", lockkey.ErrInvalid)
	}
	for _, key := range keys {
		if err := key.Err(); err != nil {
			return nil, err
		}
	}
	terms, err := termsOf(opts)
	switch {
	case err != nil:
		return nil, err
	case terms.Try && terms.Timeout > 0:
		return nil, fmt.Errorf("%w: Try does not wait, so Timeout(%s) means nothing: use one of them", ErrOption, terms.Timeout)
	case terms.AllowPooler:
		return nil, fmt.Errorf("%w: AllowPooler is for SessionLocker: a lock of a transaction works behind a pooler without it", ErrOption)
	}
	r := &Request{locks: make([]lock, 0, len(keys)), try: terms.Try, timeout: terms.Timeout, allowSnapshot: terms.AllowSnapshot, servers: terms.Servers}
	for _, key := range keys {
		r.add(key, terms.Shared)
	}
	r.order()
	return r, nil
}

func termsOf(opts []Option) (terms Terms, err error) {
	for _, o := range opts {
		if o == nil {
			return terms, fmt.Errorf("%w: a nil option", ErrOption)
		}
		if err := o.apply(&terms); err != nil {
			return terms, err
		}
	}
	return terms, nil
}

// add adds the lock of a key, or both of a renamed one.
func (r *Request) add(key lockkey.Key, shared bool) {
	if _, renamed := key.Former(); !renamed {
		r.locks = append(r.locks, lock{key: key, shared: shared})
		return
	}
	for _, k := range key.Keys() {
		r.locks = append(r.locks, lock{key: k, shared: shared})
	}
}

// And combines requests into one for all their locks, with the strictest rules: it does not wait if one of them does not,
// waits no longer than the shortest timeout, and allows an older snapshot or a server only if all do.
func (r *Request) And(others ...*Request) *Request {
	if len(others) == 0 {
		return r
	}
	all := *r
	all.locks = slices.Clone(r.locks)
	for _, other := range others {
		all.locks = append(all.locks, other.locks...)
		all.try = all.try || other.try
		all.allowSnapshot = all.allowSnapshot && other.allowSnapshot
		all.servers = slices.DeleteFunc(slices.Clone(all.servers), func(name string) bool { return !lookalike.Allows(other.servers, name) })
		if all.timeout == 0 || other.timeout > 0 && other.timeout < all.timeout {
			all.timeout = other.timeout
		}
	}
	if all.try {
		all.timeout = 0
	}
	all.order()
	return &all
}

// Within is the request with the timeout d, unless it has Try or a Timeout of its own.
func (r *Request) Within(d time.Duration) *Request {
	if d <= 0 || r.try || r.timeout > 0 {
		return r
	}
	bounded := *r
	bounded.timeout = d
	return &bounded
}

// Allowing is the request with more servers allowed. The caller has checked their names.
func (r *Request) Allowing(servers []string) *Request {
	if len(servers) == 0 {
		return r
	}
	allowing := *r
	allowing.servers = slices.Concat(r.servers, servers)
	return &allowing
}

// Keys are the keys in the order in which they are taken.
func (r *Request) Keys() []lockkey.Key {
	keys := make([]lockkey.Key, len(r.locks))
	for i, l := range r.locks {
		keys[i] = l.key
	}
	return keys
}

// Each calls f for every lock, in the order in which they are taken.
func (r *Request) Each(f func(key lockkey.Key, shared bool)) {
	for _, l := range r.locks {
		f(l.key, l.shared)
	}
}

// order sorts the locks into the one order that every call of this package uses, and drops repetitions. Of a shared and an
// exclusive lock it keeps the exclusive one: two calls that took the lock shared and then exclusively would wait for each other.
func (r *Request) order() {
	slices.SortStableFunc(r.locks, func(a, b lock) int {
		if c := lockkey.Compare(a.key, b.key); c != 0 {
			return c
		}
		switch {
		case a.shared == b.shared:
			return 0
		case b.shared:
			return -1
		default:
			return 1
		}
	})
	r.locks = slices.CompactFunc(r.locks, func(a, b lock) bool { return lockkey.Compare(a.key, b.key) == 0 })
}
