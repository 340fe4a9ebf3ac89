package work_test

import (
	"context"
	"testing"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// TestRun_doesNotAskAllTheTimeForALockedJob: a worker rarely looks at a due job that somebody has locked.
func TestRun_doesNotAskAllTheTimeForALockedJob(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	beside := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(beside, &Mail{}))
	must(t, beside.Exec("INSERT INTO mails (text, state, run_at) VALUES ('later', 'later', now() - interval '1 s')").Error)
	tx := beside.Begin()
	must(t, tx.Exec("SELECT FROM mails FOR UPDATE").Error)
	proxy, through := pgtest.Tap(t, dsn)
	ran := make(chan struct{})
	end := start(t, worker(t, pgtest.Open(t, pgtest.Through(through), pgtest.Plugin(gormlock.New())), func(context.Context, *Mail) error {
		close(ran)
		return nil
	}))
	<-time.After(time.Second) // it has begun
	proxy.Reset()
	<-time.After(time.Second)
	if n := len(proxy.Statements()); n > 100 {
		t.Errorf("%d statements in a second", n)
	}
	must(t, tx.Rollback().Error)
	<-ran
	must(t, end())
}
