package lockkey_test

import (
	"errors"
	"testing"

	"github.com/gormlock/gormlock/lockkey"
)

func TestRenamed(t *testing.T) {
	t.Parallel()
	a, b, pair := lockkey.Of("report", 1), lockkey.Of("billing", 1), lockkey.Pair(1, 2)
	k := lockkey.Renamed(a, b)
	if k.Err() != nil || k.Name() != "report/1" || k.Topic() != "report" || k.String() != "report/1, formerly billing/1" {
		t.Errorf("got %v, %q, %q, %q", k.Err(), k.Name(), k.Topic(), k)
	}
	if _, ok := k.Int64(); ok {
		t.Error("two locks have one number")
	}
	if _, _, ok := lockkey.Renamed(pair, a).Pair(); ok {
		t.Error("two locks have one pair")
	}
	if old, ok := k.Former(); !ok || old != b {
		t.Errorf("the former key is %v, %v", old, ok)
	}
	if _, ok := a.Former(); ok {
		t.Error("a key was renamed that was not")
	}
	one, other := k.Keys(), lockkey.Renamed(b, a).Keys()
	if len(one) != 2 || len(other) != 2 || one[0] != other[0] || one[1] != other[1] || lockkey.Compare(one[0], one[1]) >= 0 {
		t.Errorf("they are taken as %v and %v", one, other)
	}
	if keys := a.Keys(); len(keys) != 1 || keys[0] != a {
		t.Errorf("%v stands for %v", a, keys)
	}
	if k != lockkey.Renamed(a, b) || k == lockkey.Renamed(b, a) || k == a {
		t.Error("== does not hold for the same keys, or for others")
	}
	if k.Named("x") == k || lockkey.Compare(k.Named("x"), k) != 0 {
		t.Error("Named is another lock, or the same name")
	}
}

func TestRenamed_orders(t *testing.T) {
	t.Parallel()
	a, b, c := lockkey.Int64(1), lockkey.Int64(2), lockkey.Int64(3)
	ordered := []lockkey.Key{a, lockkey.Renamed(a, b), lockkey.Renamed(a, c), b, lockkey.Renamed(b, a), c, lockkey.Pair(0, 1)}
	for i, x := range ordered {
		for j, y := range ordered {
			if got := lockkey.Compare(x, y); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s and %s compare as %d", x, y, got)
			}
		}
	}
}

func TestRenamed_refusals(t *testing.T) {
	t.Parallel()
	a, b, bad := lockkey.Of("a"), lockkey.Of("b"), lockkey.Of(1.5)
	for name, k := range map[string]lockkey.Key{
		"to nothing": lockkey.Renamed(bad, a), "from nothing": lockkey.Renamed(a, bad), "from the zero Key": lockkey.Renamed(a, lockkey.Key{}),
		"twice": lockkey.Renamed(lockkey.Renamed(a, b), lockkey.Of("c")), "twice before": lockkey.Renamed(lockkey.Of("c"), lockkey.Renamed(a, b)),
	} {
		if err := k.Err(); !errors.Is(err, lockkey.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if k := lockkey.Renamed(a, a.Named("other")); k != a {
		t.Errorf("the same lock under two names is %v", k)
	}
}
