package lockkey_test

import (
	"encoding/json"
	"errors"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/lockkey"
)

type (
	name   string
	status int
	blob   []byte
)

func (status) String() string { return "status" }

type tenant struct{ id string }

func (t tenant) String() string { return "tenant-" + t.id }

type broken struct{}

func (broken) String() string { panic("no name") }

// id is the bigint of a key that must be valid.
func id(t *testing.T, k lockkey.Key) int64 {
	t.Helper()
	n, ok := k.Int64()
	if err := k.Err(); err != nil || !ok {
		t.Fatalf("%s: Err %v, Int64 ok %v", k, err, ok)
	}
	return n
}

// The ids were computed by the Python of the package comment.
func TestOf_isTheDocumentedHash(t *testing.T) {
	t.Parallel()
	for want, k := range map[int64]lockkey.Key{
		1840925882773462882:  lockkey.Of("invoice", 42),
		-5010664483709227796: lockkey.Of(""),
		4661374564091411500:  lockkey.Of("a\x00b"),
		-6344090540471610942: lockkey.Of("日本語", -1, uint64(math.MaxUint64)),
	} {
		if got := id(t, k); got != want {
			t.Errorf("%s: %d, want %d", k, got, want)
		}
	}
}

func TestOf_sameValueSameKey(t *testing.T) {
	t.Parallel()
	fortyTwo := []any{42, int8(42), int16(42), int32(42), int64(42), uint(42), uint8(42), uint16(42), uint32(42), uint64(42),
		status(42), '*', "42", name("42"), []byte("42"), blob("42"), json.RawMessage("42"), time.Duration(42)}
	for _, part := range fortyTwo {
		if k := lockkey.Of("invoice", part); k != lockkey.Of("invoice", 42) {
			t.Errorf("%T: %v, want %v", part, k, lockkey.Of("invoice", 42))
		}
	}
	for _, pair := range [][2]any{
		{tenant{"7"}, "tenant-7"},
		{&tenant{"7"}, "tenant-7"},
		{net.IPv4(10, 0, 0, 1), "10.0.0.1"},
		{net.IPv4(10, 0, 0, 1).To4(), "10.0.0.1"}, // other bytes, the same address
		{[]byte(nil), ""},
		{uint64(math.MaxUint64), "18446744073709551615"},
		{int64(math.MinInt64), "-9223372036854775808"},
	} {
		if a, b := lockkey.Of(pair[0]), lockkey.Of(pair[1]); a != b {
			t.Errorf("%T: %v, want %v", pair[0], a, b)
		}
	}
}

func TestOf_differentPartsDifferentKey(t *testing.T) {
	t.Parallel()
	keys := []lockkey.Key{
		lockkey.Of(""), lockkey.Of("", ""), lockkey.Of("a"), lockkey.Of("a", ""), lockkey.Of("", "a"), lockkey.Of("a\x00"),
		lockkey.Of("\x00a"), lockkey.Of("\x00"), lockkey.Of("a", "bc"), lockkey.Of("ab", "c"), lockkey.Of("abc"), lockkey.Of("a/b"),
		lockkey.Of("a", "b"), lockkey.Of("1:a"), lockkey.Of("1:a1:b"), lockkey.Of(1, 2), lockkey.Of(12), lockkey.Of(-12),
		lockkey.Of("é"), lockkey.Of("e\u0301"), lockkey.Of("\xff"), lockkey.Of("\uFFFD"), // K8: nothing is normalised
	}
	ids, names, texts := map[int64]bool{}, map[string]bool{}, map[string]bool{}
	for _, k := range keys {
		ids[id(t, k)], names[k.Name()], texts[k.String()] = true, true, true
	}
	if len(ids) != len(keys) || len(names) != len(keys) || len(texts) != len(keys) {
		t.Errorf("%d keys: %d ids, %d names, %d strings", len(keys), len(ids), len(names), len(texts))
	}
}

func TestOf_invalidPartIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	var nilTenant *tenant
	now := time.Now()
	for _, c := range []struct {
		want string
		k    lockkey.Key
	}{
		{"no parts", lockkey.Of()},
		{"the zero Key", lockkey.Key{}},
		{"part 1 is nil", lockkey.Of(nil)},
		{"part 2 is a float64", lockkey.Of("a", 1.5)},
		{"part 3 is a bool", lockkey.Of("a", 1, true)},
		{"part 2 is a *int", lockkey.Of("a", new(int))},
		{"part 2 is a struct {}", lockkey.Of("a", struct{}{})},
		{"part 1 is a []string", lockkey.Of([]string{"a"})},
		{"part 1 is a [2]uint8", lockkey.Of([2]byte{1, 2})},
		{"part 1 is a uintptr", lockkey.Of(uintptr(1))},
		{"part 1 is a *errors.errorString", lockkey.Of(errors.New("a"))},
		{"part 2 is a nil *lockkey_test.tenant", lockkey.Of("a", nilTenant)},
		{"part 2 is a nil *url.URL", lockkey.Of("a", (*url.URL)(nil))},
		{"part 2 is a nil net.IP", lockkey.Of("a", net.IP(nil))},
		{"part 2 is a lockkey_test.broken whose String panicked: no name", lockkey.Of("a", broken{})},
		{"part 1 is a lockkey.Key", lockkey.Of(lockkey.Of("a"))},
		{"part 1 is a time.Time", lockkey.Of(now)},
		{"part 1 is a *time.Time", lockkey.Of(&now)},
		{"of my own", lockkey.Invalid("of my own")},
		{"of my own", lockkey.Invalid("of my own").Named("a")},
	} {
		err := c.k.Err()
		if !errors.Is(err, lockkey.ErrInvalid) || !strings.HasPrefix(err.Error(), "gormlock: invalid lock key: "+c.want) {
			t.Errorf("Err is %v, want %q", err, c.want)
			continue
		}
		if "gormlock: "+c.k.String() != err.Error() {
			t.Errorf("String %q, Err %q", c.k, err)
		}
		if _, ok := c.k.Int64(); ok {
			t.Errorf("%s: has a bigint", c.k)
		}
		if _, _, ok := c.k.Pair(); ok {
			t.Errorf("%s: has a pair", c.k)
		}
		if c.k.Name() != "" || c.k.Topic() != "" {
			t.Errorf("%s: Name %q, Topic %q", c.k, c.k.Name(), c.k.Topic())
		}
	}
	if s := lockkey.Invalid("line\nbreak \x1b[31m").String(); s != `invalid lock key: line\nbreak \x1b[31m` {
		t.Errorf("String is %q", s)
	}
}

// P23, K9: a pair is never the bigint with the same bits.
func TestKey_spacesAreDisjoint(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]int32{{0, 0}, {7, 42}, {-1, -2}, {math.MinInt32, math.MaxInt32}, {0, -1}} {
		p := lockkey.Pair(c[0], c[1])
		if hi, lo, ok := p.Pair(); !ok || hi != c[0] || lo != c[1] || p.Err() != nil {
			t.Errorf("Pair(%d, %d) holds %d, %d, %v", c[0], c[1], hi, lo, ok)
		}
		n := lockkey.Int64(int64(c[0])<<32 | int64(uint32(c[1])))
		if _, ok := p.Int64(); ok {
			t.Errorf("%v is a bigint", p)
		}
		if _, _, ok := n.Pair(); ok {
			t.Errorf("%v is a pair", n)
		}
		if p == n || lockkey.Compare(p, n) == 0 || p.String() == n.String() {
			t.Errorf("%v and %v are one key", p, n)
		}
	}
}

func TestNamed_keepsTheLock(t *testing.T) {
	t.Parallel()
	k := lockkey.Int64(7)
	n := k.Named("rails-migrator", "app_test")
	if n.String() != "rails-migrator/app_test" || n.Topic() != "rails-migrator" || id(t, n) != 7 {
		t.Errorf("%v, topic %q", n, n.Topic())
	}
	if n == k || lockkey.Compare(n, k) != 0 || n.Named() != k {
		t.Error("a name changed the lock")
	}
}

func TestCompare_isATotalOrderOfLocks(t *testing.T) {
	t.Parallel()
	want := []lockkey.Key{
		{}, lockkey.Int64(math.MinInt64), lockkey.Int64(-1), lockkey.Int64(0), lockkey.Int64(math.MaxInt64),
		lockkey.Pair(-1, 0), lockkey.Pair(0, 0), lockkey.Pair(0, 1), lockkey.Pair(0, -1), lockkey.Pair(1, 0),
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, lockkey.Compare)
	if !slices.Equal(got, want) {
		t.Errorf("sorted %v, want %v", got, want)
	}
}
