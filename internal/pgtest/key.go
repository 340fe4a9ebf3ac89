package pgtest

import (
	"crypto/rand"
	"encoding/binary"
	"testing"

	"github.com/gormlock/gormlock/lockkey"
)

// Key returns a key that nobody else has, named after the test and parts. If it is still locked at the end of the test, the test fails. That check
// runs before earlier setup is closed: call Key after Open to see the pool's locks too.
func Key(t testing.TB, parts ...any) lockkey.Key {
	t.Helper()
	return fresh(t, lockkey.Of(append([]any{t.Name(), rand.Text()[:10]}, parts...)...))
}

// PairKey is Key in the space of two int4.
func PairKey(t testing.TB) lockkey.Key {
	t.Helper()
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	n := binary.BigEndian.Uint64(id[:])
	return fresh(t, lockkey.Pair(int32(n>>32), int32(n)).Named(t.Name()))
}

func fresh(t testing.TB, key lockkey.Key) lockkey.Key {
	t.Helper()
	if err := key.Err(); err != nil {
		t.Fatal(err)
	}
	DSN(t)
	t.Cleanup(func() { AssertFree(t, key) })
	return key
}
