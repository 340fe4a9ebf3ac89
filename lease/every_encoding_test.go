package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// An error whose text the database's encoding lacks fails the run, and does not end the schedule.
func TestEvery_anErrorThatTheEncodingLacks(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	admin := pgtest.Conn(t, pgtest.Through(server.DSN("postgres")))
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE in_latin1 TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"); err != nil {
		t.Fatal(err)
	}
	db := pgtest.SQLDB(t, pgtest.Through(server.DSN("in_latin1")), pgtest.Param("client_encoding", "UTF8"))
	if err := lease.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"quotes": "could not open ‘report’", "long": strings.Repeat("x", 8001)} {
		m, err := lease.New(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		ctx, enough := context.WithTimeout(t.Context(), bound)
		runs := 0
		err = m.Every(ctx, lockkey.Of("every", name), lease.Interval(10*time.Millisecond), func(context.Context, time.Time) error {
			if runs++; runs == 1 {
				return errors.New(text)
			}
			if runs > 2 {
				enough()
			}
			return nil
		})
		enough()
		if runs < 3 {
			t.Errorf("%s: it ended after %d runs: %v", name, runs, err)
		}
		_ = m.Close(context.WithoutCancel(ctx))
	}
}
