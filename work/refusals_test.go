package work

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A job is left out for a while, and longer if there are many. The log names it now and then.
func TestRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r refusals
		refuse := func(ids ...int64) int {
			found := map[int64]error{}
			for _, id := range ids {
				found[id] = errors.New("refused")
			}
			return len(r.add(found))
		}
		out := func(want string) {
			t.Helper()
			if got := r.without(); got != want {
				t.Errorf("without %q, want %q", got, want)
			}
		}
		out("")
		if n := refuse(7, 9); n != 2 {
			t.Errorf("%d are named", n)
		}
		out(" AND {ID} <> ALL('{7,9}'::bigint[])")
		<-time.After(aside)
		out("")
		if n := refuse(7); n != 0 {
			t.Errorf("%d are named again at once", n)
		}
		out(" AND {ID} <> ALL('{7}'::bigint[])")
		<-time.After(namedAgain)
		out("")
		if n := refuse(7); n != 1 || len(r.of) != 1 {
			t.Errorf("%d are named later, %d are known", n, len(r.of))
		}
		for id := range int64(10_000) {
			refuse(id)
		}
		<-time.After(2 * aside)
		if left := len(r.now()); left < 5_000 {
			t.Errorf("%d of many are left out", left)
		}
	})
}
