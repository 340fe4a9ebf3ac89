package inspect_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// Another program sees the name of a session lock while the lock is held.
func TestKeepNames_ofSessionLocks(t *testing.T) {
	t.Parallel()
	for space, newKey := range map[string]func(testing.TB) lockkey.Key{
		"bigint": func(t testing.TB) lockkey.Key { return pgtest.Key(t, "nightly") }, "pair": pgtest.PairKey,
	} {
		t.Run(space, func(t *testing.T) {
			t.Parallel()
			db := pgtest.SQLDB(t, pgtest.Schema())
			if err := inspect.Migrate(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			names := inspect.KeepNames(db, slog.New(slog.DiscardHandler))
			defer names.Close()
			m, err := sessionlock.Open(t.Context(), pgtest.DSN(t), sessionlock.Observer(names))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close(t.Context())
			key := newKey(t)
			l, err := m.Acquire(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			named := func() bool {
				for _, l := range snapshot(t, db).Locks {
					if l.Name == key.String() && l.Source == "names" && l.Granted {
						return l.Scope == inspect.SessionScope
					}
				}
				return false
			}
			for deadline := time.Now().Add(20 * time.Second); !named(); <-time.After(50 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%s has no name, or is no session lock: %+v", key, snapshot(t, db).Locks)
				}
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
