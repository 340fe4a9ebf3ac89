package pgtime_test

import (
	"math"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/pgtime"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// What is taken comes back from the server as it was.
func TestCheck(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	for _, at := range []time.Time{
		{}, time.Unix(0, 0), time.Date(-4712, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(294246, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
	} {
		if err := pgtime.Check(at); err != nil {
			t.Error(err)
		}
		var is time.Time
		if err := db.QueryRowContext(t.Context(), "SELECT $1::timestamptz", at).Scan(&is); err != nil || !is.Equal(at) {
			t.Errorf("%s is stored as %s: %v", at, is, err)
		}
	}
	for _, at := range []time.Time{
		time.Date(-4713, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(294247, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Unix(1<<60, 0), time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0),
	} {
		if pgtime.Check(at) == nil {
			t.Errorf("%s is taken", at)
		}
	}
}
