package work

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
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
			return len(r.add(found, 0))
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
		<-time.After(asideFirst + asideEach)
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
		<-time.After(asideMost)
		if left := len(r.now()); left < 5_000 {
			t.Errorf("%d of many are left out", left)
		}
	})
}

// A job is left out for ever longer if it is refused again and again, unless it is for something that passes.
func TestRefusals_getLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r refusals
		refuse := func(code string, want time.Duration) {
			t.Helper()
			began := time.Now()
			r.add(map[int64]error{7: &pgconn.PgError{Code: code}}, 0)
			for len(r.now()) > 0 {
				<-time.After(100 * time.Millisecond)
			}
			if took := time.Since(began); took != want {
				t.Errorf("left out for %s, want %s", took, want)
			}
		}
		for _, code := range []string{"55P03", "57014", "40P01", "53200"} {
			refuse(code, asideFirst)
		}
		for want := asideFirst; want < asideMost; {
			want = min(2*want, asideMost)
			refuse("P0001", want)
		}
		refuse("P0001", asideMost)
		refuse("55P03", asideFirst)
		<-time.After(asideMost)
		refuse("P0001", asideFirst)
	})
}
