package fence_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/lockkey"
)

func token(t *testing.T, k lockkey.Key, number int64) fence.Token {
	t.Helper()
	tok, err := fence.For(k, number)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// L12
func TestFor_holdsTheKeyInItsSpace(t *testing.T) {
	t.Parallel()
	n := token(t, lockkey.Of("report", 7), 9)
	id, _ := lockkey.Of("report", 7).Int64()
	if n != (fence.Token{Space: 1, ID: id, Topic: "report", Name: "report/7", Number: 9}) {
		t.Errorf("got %+v", n)
	}
	p := token(t, lockkey.Pair(-1, -2), 0)
	if p.Space != 2 || int32(p.ID>>32) != -1 || int32(p.ID) != -2 || p.Name != "pair(-1,-2)" {
		t.Errorf("got %+v", p)
	}
	if same := token(t, lockkey.Int64(p.ID), 0); same.SameKey(p) {
		t.Error("a bigint and a pair with its bits are one key")
	}
	if _, err := fence.For(lockkey.Of(), 1); !errors.Is(err, lockkey.ErrInvalid) {
		t.Errorf("an invalid key gives %v", err)
	}
}

func TestToken_String(t *testing.T) {
	t.Parallel()
	if s := token(t, lockkey.Of("report", 7), 9).String(); s != "report/7#9" {
		t.Errorf("got %q", s)
	}
	if s := (fence.Token{}).String(); s != "no token" || !(fence.Token{}).IsZero() {
		t.Errorf("got %q", s)
	}
}

// V14: a token of one key never stands in for that of another.
func TestContext_carriesOneTokenPerKey(t *testing.T) {
	t.Parallel()
	one, two, other := token(t, lockkey.Of("report", 1), 5), token(t, lockkey.Of("report", 2), 6), token(t, lockkey.Of("invoice", 1), 7)
	outer := fence.NewContext(context.Background(), one, other)
	later := token(t, lockkey.Of("report", 1), 8)
	inner := fence.NewContext(fence.NewContext(outer, two), later)

	if got := fence.ByTopic(inner, "invoice"); len(got) != 1 || got[0] != other {
		t.Errorf("invoice: %v", got)
	}
	if got := fence.ByTopic(inner, "report"); len(got) != 2 || got[0] != two || got[1] != later {
		t.Errorf("report: %v", got)
	}
	if got := fence.FromContext(outer); len(got) != 2 || got[0] != one || got[1] != other {
		t.Errorf("the outer context changed: %v", got)
	}
	if got := fence.ByTopic(inner, "rep"); len(got) != 0 {
		t.Errorf("rep: %v", got)
	}
	fence.FromContext(outer)[0].Number = 99
	if got := fence.FromContext(outer); got[0] != one {
		t.Errorf("the caller's slice is the context's: %v", got)
	}
	if got := fence.FromContext(context.Background()); len(got) != 0 {
		t.Errorf("an empty context carries %v", got)
	}
}

// A key that was renamed stands for two locks, and tokens of different keys do not compare.
func TestFor_refusesARenamedKey(t *testing.T) {
	t.Parallel()
	if tok, err := fence.For(lockkey.Renamed(lockkey.Of("a"), lockkey.Of("b")), 1); err == nil || !tok.IsZero() {
		t.Errorf("got %v, %v", tok, err)
	}
}
