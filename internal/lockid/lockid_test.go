package lockid_test

import (
	"testing"

	"github.com/gormlock/gormlock/internal/lockid"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The number of a key is what the server itself shows of its lock.
func TestOf_isWhatTheServerShows(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t, pgtest.Through(pgtest.Database(t)))
	for call, key := range map[string]lockkey.Key{
		"42": lockkey.Int64(42), "-1": lockkey.Int64(-1), "-9223372036854775808": lockkey.Int64(-1 << 63), "9223372036854775807": lockkey.Int64(1<<63 - 1),
		"7, 42": lockkey.Pair(7, 42), "-1, 1": lockkey.Pair(-1, 1), "1, -1": lockkey.Pair(1, -1),
		"'-2147483648'::int, 2147483647": lockkey.Pair(-1<<31, 1<<31-1),
	} {
		var shown lockid.ID
		var classid, objid uint32
		if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_lock("+call+")"); err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		err := conn.QueryRow(t.Context(), `SELECT objsubid, (classid::bigint << 32) | objid::bigint, classid::bigint, objid::bigint FROM pg_locks
			WHERE locktype = 'advisory' AND pid = pg_backend_pid()`).Scan(&shown.Space, &shown.ID, &classid, &objid)
		if err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		got, ok := lockid.Of(key)
		if high, low := got.Halves(); !ok || got != shown || high != classid || low != objid {
			t.Errorf("%s: %+v, the server shows %+v", key, got, shown)
		}
		if got.Key() != key {
			t.Errorf("%+v is %s, want %s", got, got.Key(), key)
		}
		if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_unlock_all()"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOf_refusesWhatIsNoSingleLock(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]lockkey.Key{
		"none": {}, "invalid": lockkey.Of(), "renamed": lockkey.Renamed(lockkey.Of("new"), lockkey.Of("old")),
	} {
		if id, ok := lockid.Of(key); ok {
			t.Errorf("%s: %+v", name, id)
		}
	}
}
