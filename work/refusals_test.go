package work

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A job is left alone for a while, and longer if there are many such jobs. The log names it rarely.
func TestRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r refusals
		refuse := func(ids ...int64) int {
			found := map[int64]error{}
			for _, id := range ids {
				found[id] = errors.New("refused")
			}
			news, _ := r.add(found, 0)
			return len(news)
		}
		out := func(want string) {
			t.Helper()
			if got := r.without(); got != want {
				t.Errorf("without %q, want %q", got, want)
			}
		}
		parts := func(want string) {
			t.Helper()
			r.begin()
			got := ""
			for p := r.next(10_000); len(p.ids) > 0; p = r.next(10_000) {
				got += array(p.ids)
			}
			if got != want {
				t.Errorf("the parts are %s, want %s", got, want)
			}
		}
		out("")
		if n := refuse(7, 9); n != 2 {
			t.Errorf("%d are named", n)
		}
		out(" AND {ID} <> ALL('{7,9}'::bigint[])")
		<-time.After(asideFirst - time.Millisecond)
		parts("")
		<-time.After(asideEach + time.Millisecond)
		out(" AND {ID} <> ALL('{7,9}'::bigint[])") // even while they are tried again, because that is done apart
		parts("{7,9}")
		r.tried(part{ids: []int64{9}}, 1, nil, 0)
		if n := refuse(7); n != 0 {
			t.Errorf("%d are named again at once", n)
		}
		out(" AND {ID} <> ALL('{7}'::bigint[])")
		<-time.After(namedAgain)
		parts("{7}")
		r.tried(part{ids: []int64{7}}, 1, nil, 0)
		out("")
		r.begin()
		if n := refuse(7); n != 1 || len(r.of) != 1 {
			t.Errorf("%d are named later, %d are known", n, len(r.of))
		}
		for id := range int64(10_000) {
			refuse(id)
		}
		<-time.After(asideMost)
		r.together = time.Time{}
		r.begin()
		tried := 0
		for p := r.next(10_000); len(p.ids) > 0; p = r.next(10_000) {
			tried += len(p.ids)
		}
		if tried > 5_000 {
			t.Errorf("%d of many are tried again", tried)
		}
	})
}

// A job that is refused again and again is left alone for longer and longer, unless the reason is one that passes.
func TestRefusals_getLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r refusals
		refuse := func(code string, want time.Duration) {
			t.Helper()
			began := time.Now()
			r.add(map[int64]error{7: &pgconn.PgError{Code: code}}, 0)
			r.pass(1)
			for r.begin(); !r.searching(); r.begin() {
				<-time.After(100 * time.Millisecond)
			}
			for p := r.next(1); len(p.ids) > 0; p = r.next(1) {
				if p.early {
					t.Error("it is tried early")
				}
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

// A part is divided into as many parts as can be tried in the time of one refusal. Larger parts come first.
func TestRefusals_divide(t *testing.T) {
	const tryFor = 5 * time.Millisecond
	t.Parallel()
	list := func(n int64) (ids []int64) {
		for id := range n {
			ids = append(ids, id)
		}
		return ids
	}
	var r refusals
	refusal := &pgconn.PgError{Code: "P0001", Where: "a trigger"}
	tried := func(err error, took time.Duration, most int, want ...int) {
		t.Helper()
		if p := r.next(most); err != nil || len(p.ids) > 0 {
			r.tried(p, len(p.ids), err, took)
		}
		var got []int
		for _, p := range r.parts {
			got = append(got, len(p.ids))
		}
		if !slices.Equal(got, want) {
			t.Errorf("parts of %d, want %d", got, want)
		}
	}
	r.suspect(list(100), refusal, 0)
	tried(refusal, tryFor, 100, 50, 25, 25)
	tried(nil, tryFor, 20, 30, 25, 25)
	tried(nil, tryFor, 0, 30, 25, 25)
	tried(refusal, 6*tryFor, 100, 25, 25, 5, 5, 5, 5, 5, 5)
	tried(errors.New("no answer"), time.Hour, 100, 25, 5, 5, 5, 5, 5, 5, 25)
	if n := len(r.now()); n != 80 {
		t.Errorf("%d are left out", n)
	}
	r = refusals{}
	r.suspect(list(4), refusal, time.Second)
	tried(nil, 0, 100, 1, 1, 1)
	r.parts = []part{{list(20), true}, {list(3), false}}
	tried(refusal, time.Second, 5, 3)
	if n := len(r.now()); n != 20 || !r.isAside(19) {
		t.Errorf("%d are left out", n)
	}
}

// While the server accepts nothing, all jobs that are left alone are tried as one part every few seconds, and once more after it has accepted
// something. If it refuses that part, it is not divided.
func TestRefusals_together(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r refusals
		refusal := &pgconn.PgError{Code: "P0001", Where: "a trigger"}
		early := func() (n int) {
			r.begin()
			for p := r.next(100); len(p.ids) > 0; p = r.next(100) {
				if p.early {
					n += len(p.ids)
					r.tried(p, 0, refusal, time.Second)
					continue
				}
				for _, id := range p.ids {
					r.add(map[int64]error{id: refusal}, 0)
				}
			}
			return n
		}
		r.add(map[int64]error{1: refusal, 2: refusal}, 0)
		<-time.After(asideFirst + time.Second)
		if n := early(); n != 0 { // all are tried again anyway
			t.Errorf("%d are tried early at first", n)
		}
		for _, want := range []int{2, 1} { // by then one of them is due
			if in, is := r.due(); !is || in > asideFirst {
				t.Errorf("due in %s, %t", in, is)
			}
			<-time.After(asideFirst)
			if n := early(); n != want {
				t.Errorf("%d are tried early, want %d", n, want)
			}
			if len(r.now()) != 2 || !r.isAside(1) {
				t.Errorf("%d are left out", r.now())
			}
			r.pass(1)
		}
		<-time.After(asideFirst - time.Second/2)
		if n := early(); n != 0 {
			t.Errorf("%d are tried early, and others pass", n)
		}
		<-time.After(asideFirst)
		early()
		r.hurry()
		if !r.searching() || r.isAside(1) {
			t.Error("they are not tried at the end")
		}
	})
}
