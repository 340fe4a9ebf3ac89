package locks_test

import (
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// openNamed opens a database with names of keys, and returns it with what its logger is told.
func openNamed(t *testing.T, opts ...pgtest.Option) (*gorm.DB, *pgtest.Logger) {
	t.Helper()
	log := pgtest.NewLogger()
	plugin := gormlock.New(gormlock.WithKeyNames())
	t.Cleanup(func() { _ = plugin.Close() })
	opts = append([]pgtest.Option{pgtest.Schema(), pgtest.Plugin(plugin), pgtest.Config(func(c *gorm.Config) { c.Logger = log })}, opts...)
	return pgtest.Open(t, opts...), log
}

func migrateNames(t *testing.T, db *gorm.DB) {
	t.Helper()
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := inspect.Migrate(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
}

// nameOf waits until the key has a name in the table, and is "" when it gets none.
func nameOf(t *testing.T, db *gorm.DB, key lockkey.Key) (name string) {
	t.Helper()
	id, ok := key.Int64()
	if hi, lo, pair := key.Pair(); pair {
		id, ok = int64(hi)<<32|int64(uint32(lo)), true
	}
	for deadline := time.Now().Add(10 * time.Second); ok && name == "" && time.Now().Before(deadline); {
		if err := db.Raw("SELECT coalesce(max(name), '') FROM gormlock_key_name WHERE id = ?", id).Scan(&name).Error; err != nil {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
	return name
}

// L18. The name is there while the lock is held and waited for, which is when somebody asks.
func TestKeyNames_ofKeysHeldForLong(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(tx *gorm.DB, key lockkey.Key) error{
		"AcquireXactLock": func(tx *gorm.DB, key lockkey.Key) error {
			return gormlock.AcquireXactLock(tx, []lockkey.Key{key})
		},
		"WithXactLock": func(tx *gorm.DB, key lockkey.Key) error {
			return tx.Scopes(gormlock.WithXactLock(key)).Exec("SELECT 1").Error
		},
	} {
		for space, newKey := range map[string]func(testing.TB) lockkey.Key{
			"bigint": func(t testing.TB) lockkey.Key { return pgtest.Key(t, "a b", 42) }, "pair": pgtest.PairKey,
		} {
			t.Run(name+" "+space, func(t *testing.T) {
				t.Parallel()
				db, log := openNamed(t)
				migrateNames(t, db)
				key, quick := newKey(t), pgtest.Key(t, "quick")
				if err := gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(quick)); err != nil {
					t.Fatal(err)
				}
				err := db.Transaction(func(tx *gorm.DB) error {
					if err := take(tx, key); err != nil {
						return err
					}
					if got := nameOf(t, db, key); got != key.String() {
						t.Errorf("the name is %q, want %q", got, key)
					}
					return nil
				})
				if err != nil || len(log.Lines()) > 0 {
					t.Errorf("%v, the logger was told %q", err, log.Lines())
				}
				var rows int64
				if db.Table(inspect.Table).Count(&rows); rows != 1 {
					t.Errorf("%d rows, want that of the one key which was held for long", rows)
				}
			})
		}
	}
}

func TestKeyNames_ofKeysWaitedFor(t *testing.T) {
	t.Parallel()
	db, _ := openNamed(t)
	migrateNames(t, db)
	key := pgtest.Key(t)
	rival := pgtest.Conn(t)
	id, _ := key.Int64()
	if _, err := rival.Exec(t.Context(), "SELECT pg_advisory_lock($1)", id); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(key))
	}()
	if got := nameOf(t, db, key); got != key.String() {
		t.Errorf("the name is %q, want %q", got, key)
	}
	pool, _ := db.DB()
	view, err := inspect.Snapshot(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, l := range view.Locks {
		if l.Name == key.String() && l.Source == "names" {
			if !l.Granted && l.Scope != inspect.TransactionScope {
				t.Errorf("who waits has scope %q", l.Scope)
			}
			found++
		}
	}
	if found != 2 {
		t.Errorf("%d locks of that name, want who holds and who waits: %+v", found, view.Locks)
	}
	if _, err := rival.Exec(t.Context(), "SELECT pg_advisory_unlock($1)", id); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A table that is not there is said once, and no statement fails.
func TestKeyNames_failNobody(t *testing.T) {
	t.Parallel()
	db, log := openNamed(t)
	key := pgtest.Key(t)
	err := gormlock.Transaction(db, func(*gorm.DB) error {
		for deadline := time.Now().Add(10 * time.Second); len(log.Lines()) == 0 && time.Now().Before(deadline); {
			<-time.After(10 * time.Millisecond)
		}
		return nil
	}, gormlock.Locking(key))
	if err != nil {
		t.Error(err)
	}
	if told := log.Lines(); len(told) != 1 || !strings.Contains(told[0], "inspect.Migrate") {
		t.Errorf("the logger was told %q, want one line that names the cure", told)
	}
}

// Close ends what runs, which TestMain looks at, and a plugin that was closed notes nothing more.
func TestKeyNames_endWithClose(t *testing.T) {
	t.Parallel()
	plugin := gormlock.New(gormlock.WithKeyNames())
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(plugin))
	key := pgtest.Key(t)
	for range 2 {
		if err := gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(key)); err != nil {
			t.Fatal(err)
		}
		if err := plugin.Close(); err != nil {
			t.Error(err)
		}
	}
}
