package lockrequest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/lockkey"
)

// TestRequest: requests are values; what is made of one leaves it as it was.
func TestRequest(t *testing.T) {
	t.Parallel()
	a, b, c := lockkey.Int64(1), lockkey.Int64(2), lockkey.Pair(0, 1)
	ask := func(keys []lockkey.Key, opts ...advisory.Option) *lockrequest.Request {
		r, err := lockrequest.New(keys, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	given := []lockkey.Key{c, b, a, b, c}
	r := ask(given, advisory.Shared())
	if !slices.Equal(r.Keys(), []lockkey.Key{a, b, c}) || !slices.Equal(given, []lockkey.Key{c, b, a, b, c}) {
		t.Errorf("keys %v of %v", r.Keys(), given)
	}
	first, second := ask([]lockkey.Key{b}), ask([]lockkey.Key{a, c})
	both := first.And(second)
	if !slices.Equal(both.Keys(), []lockkey.Key{a, b, c}) || !slices.Equal(first.Keys(), []lockkey.Key{b}) || !slices.Equal(second.Keys(), []lockkey.Key{a, c}) {
		t.Errorf("%v and %v are %v", first.Keys(), second.Keys(), both.Keys())
	}
	if bounded := first.Within(time.Second); bounded == first {
		t.Error("Within changed the request itself")
	}
	for _, own := range []*lockrequest.Request{ask([]lockkey.Key{a}, advisory.Try()), ask([]lockkey.Key{a}, advisory.Timeout(time.Hour))} {
		if own.Within(time.Second) != own {
			t.Error("Within overruled a bound")
		}
	}
	if text, want := r.String(), a.String()+", "+b.String()+", "+c.String(); text != want {
		t.Errorf("named %q, want %q", text, want)
	}
}
