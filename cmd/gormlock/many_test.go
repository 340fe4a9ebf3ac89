package main_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// With 100,000 locks ls shows those that matter, says what it left out, and takes seconds.
func TestList_of100000Locks(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t, pgserver.Setting("max_locks_per_transaction", "1100"), pgserver.Setting("max_connections", "100"))
	dsn := server.DSN("postgres")
	holder, waiter := join(t, dsn, "holder"), join(t, dsn, "waiter")
	holder.exec("SELECT pg_advisory_lock(k) FROM generate_series(1, 100000) AS k")
	waiter.wait(pgtest.Observe(t, dsn), "SELECT pg_advisory_lock(77777)")

	began := time.Now()
	r := on(t, dsn, "ls")
	r.is(t, 0, "100,000 advisory locks held", "1 request waits", "99,901 more not shown: --limit 0 shows all")
	if took := time.Since(began); took > bound/2 {
		t.Errorf("it took %s", took)
	}
	lines := strings.Split(r.out, "\n")
	if len(lines) > 110 || !strings.HasPrefix(lines[1], "int64(77777)") || !strings.Contains(lines[1], "waits") || !strings.Contains(lines[2], "blocks") {
		t.Errorf("%d lines, the first:\n%s", len(lines), strings.Join(lines[:min(4, len(lines))], "\n"))
	}
	on(t, dsn, "ls", "--key", "4242").is(t, 0, "int64(4242)", ": 1 shown")
	if r := on(t, dsn, "ls", "--waiting"); r.code != 1 || !strings.HasSuffix(r.out, ": 2 shown\n") {
		t.Errorf("%d: %s", r.code, r.out)
	}
	on(t, dsn, "why", waiter.arg()).is(t, 1, "the lock int64(77777) (exclusive), which "+holder.arg()+" holds")
	on(t, dsn, "key", "--scheme", "int64", "4242").is(t, 0, "held by   in database postgres", holder.arg())
	on(t, dsn, "terminate", holder.arg()).is(t, 1, "int64(", "and many more", "1 request waits behind it")
}
