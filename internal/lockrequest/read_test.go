package lockrequest_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/lockkey"
)

// heard is a transaction that keeps what it is asked.
type heard struct {
	text string
	own  *sqltext.Own
}

func (h *heard) ExecContext(ctx context.Context, query string, _ ...any) (sql.Result, error) {
	h.text, h.own = query, sqltext.OwnIn(ctx, query)
	return rows(1), nil
}

type rows int64

func (rows) LastInsertId() (int64, error)   { return 0, nil }
func (n rows) RowsAffected() (int64, error) { return int64(n), nil }

// someRequest is a request at random, with the locks it is of.
func someRequest(t *testing.T, random *rand.Rand) (r *lockrequest.Request, locks []lockrequest.AskedLock, terms lockrequest.Terms) {
	t.Helper()
	options := func() []lockrequest.Option {
		var opts []lockrequest.Option
		if terms.Shared = random.IntN(3) == 0; terms.Shared {
			opts = append(opts, advisory.Shared())
		}
		switch random.IntN(3) {
		case 0:
			terms.Try = true
			opts = append(opts, advisory.Try())
		case 1:
			terms.Timeout = time.Duration(1+random.IntN(100_000)) * time.Millisecond
			opts = append(opts, advisory.Timeout(terms.Timeout))
		}
		if random.IntN(2) == 0 {
			opts = append(opts, advisory.AllowSnapshot())
		}
		return opts
	}
	some := func() *lockrequest.Request {
		var keys []lockkey.Key
		for range 1 + random.IntN(6) {
			if random.IntN(2) == 0 {
				keys = append(keys, lockkey.Int64(int64(random.Uint64())))
			} else {
				keys = append(keys, lockkey.Pair(int32(random.Uint32()), int32(random.Uint32())))
			}
		}
		r, err := lockrequest.New(keys, options()...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r = some()
	if random.IntN(2) == 0 { // shared and exclusive ones together
		first := terms
		terms = lockrequest.Terms{}
		r = some().And(r)
		terms.Try = terms.Try || first.Try
		if terms.Timeout == 0 || first.Timeout > 0 && first.Timeout < terms.Timeout {
			terms.Timeout = first.Timeout
		}
		if terms.Try {
			terms.Timeout = 0
		}
	}
	r.Each(func(key lockkey.Key, shared bool) {
		locks = append(locks, lockrequest.AskedLock{Key: key, Shared: shared})
	})
	return r, locks, terms
}

// TestRead: what is written is read, whatever it is, and of a text that ends early what is left of it.
func TestRead(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	prepared := 0
	for range 200 {
		r, locks, terms := someRequest(t, random)
		h := &heard{}
		if err := r.Acquire(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		_, now := r.Opening(false).Around()
		first, later := r.Opening(true).Around()
		texts := map[string]string{
			"": h.text, "travels": "BEGIN; " + now, "is handed over": first + "BEGIN ISOLATION LEVEL SERIALIZABLE; " + later,
			"leads": r.Leading("", false), "leads at a level": r.Leading("read committed", false), "leads and is handed over": r.Leading("serializable", true),
		}
		if _, definition, execute := r.Opening(false).Prepared(); execute != "" {
			texts["is executed"] = "BEGIN ISOLATION LEVEL READ COMMITTED; " + execute
			texts["is defined and executed"] = "BEGIN; " + definition + "; " + execute
			prepared++
		}
		if p := h.own.Prepared; p.Execute != "" {
			texts["under a savepoint"] = p.Before + p.Execute + p.After
			texts["defined under a savepoint"] = p.Before + p.Definition + "; " + p.Execute + p.After
		}
		for begins, text := range texts {
			asked, ok := lockrequest.Read(text)
			if !ok || asked.More || asked.Begins != (begins != "" && !strings.HasSuffix(begins, "savepoint")) || asked.Try != terms.Try || asked.Timeout != terms.Timeout || !slices.Equal(asked.Locks, locks) {
				t.Fatalf("read %+v, %v\nwant %v and %+v\nof %s", asked, ok, locks, terms, text)
			}
			for range 40 {
				end := random.IntN(len(text))
				part, ok := lockrequest.Read(text[:end])
				if !ok && end > 500 {
					t.Fatalf("not recognised: %s", text[:end])
				}
				if len(part.Locks) > len(locks) || !sameKeys(part.Locks, locks[:len(part.Locks)]) || ok && len(part.Locks) < len(locks) && !part.More {
					t.Fatalf("read %+v\nof %s", part, text[:end])
				}
			}
		}
	}
	if prepared == 0 {
		t.Error("none of the requests has a prepared statement")
	}
}

// TestOwn: what is said of a text that takes locks is what its reader would find in it. A lock writes nothing.
func TestOwn(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		r, _, _ := someRequest(t, random)
		h := &heard{}
		if err := r.Acquire(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		texts := []string{h.text}
		if p := h.own.Prepared; p.Execute != "" {
			texts = append(texts, p.Before+p.Execute+p.After)
		}
		for _, text := range texts {
			read := sqltext.Read(text)
			read.Writes = false // it does not know what it calls
			if !reflect.DeepEqual(read, h.own.Text) {
				t.Fatalf("said %+v, read %+v\nof %s", h.own.Text, read, text)
			}
		}
	}
}

func sameKeys(a, b []lockrequest.AskedLock) bool {
	return slices.EqualFunc(a, b, func(a, b lockrequest.AskedLock) bool { return a.Key == b.Key })
}

func TestRead_leavesWhatOthersWrite(t *testing.T) {
	t.Parallel()
	h := &heard{}
	if err := advisoryOf(t, 42).Acquire(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "BEGIN", "SAVEPOINT gormlock", "SELECT pg_advisory_xact_lock(42)", "BEGIN; SELECT pg_advisory_xact_lock(42)",
		"SAVEPOINT gormlock; UPDATE accounts SET balance = 1", "SELECT '" + strings.ReplaceAll(h.text, "'", "''") + "'",
		"EXPLAIN " + h.text, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT 1", "SELECT CASE WHEN pg_is_in_recovery() THEN 1 ELSE pg_advisory_xact_lock(42) END",
	} {
		if asked, ok := lockrequest.Read(text); ok {
			t.Errorf("%s is read as %+v", text, asked)
		}
	}
}

func advisoryOf(t *testing.T, id int64) *lockrequest.Request {
	t.Helper()
	r, err := lockrequest.New([]lockkey.Key{lockkey.Int64(id)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
