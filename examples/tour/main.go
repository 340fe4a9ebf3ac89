// Tour is a guided run over the features of gormlock: each chapter does a thing on a real PostgreSQL, says why the
// outcome is right, and checks that it is.
//
//	go run ./examples/tour
//
// It runs on the server of DATABASE_URL or GORMLOCK_TEST_DSN, in a schema of its own that it drops at the end, or,
// where neither is set, on a throw-away server. It exits with 1 when anything does not come out as shown.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// chapter is one feature. It fails by an error where it cannot go on, and by stage.check where an outcome is wrong.
type chapter struct {
	title string
	run   func(*stage) error
}

// chapters are told in this order.
var chapters = []chapter{
	{"A key names a lock", keys},
	{"A create, locked in GORM's own transaction", create},
	{"Read, change, write back: with a lock and without", lostUpdate},
	{"Not waiting, and not waiting for long", waiting},
	{"Readers together, a writer alone", shared},
	{"What a lock costs, in round trips", roundTrips},
	{"REPEATABLE READ: the lock comes before the snapshot", snapshot},
	{"A transaction that runs again", retries},
	{"Rows that exist", rowLocks},
	{"Two rows, in either order", transfers},
	{"Work for several workers", claim},
	{"Work while the row is locked", holding},
	{"Two people, one document", versions},
	{"What else a version can do", expectations},
	{"Tables without a version, writers without one", unversionedTables},
	{"Sixteen writers, one row", hotRow},
	{"A lock longer than a transaction", session},
	{"Two locks longer than a transaction", several},
	{"A lock with an end, and a holder that wakes up late", leases},
	{"A number for each transaction", fences},
	{"A request that arrives twice", onceOnly},
	{"Who holds what", looking},
	{"Told as it happens", events},
	{"What was not done is said", refusals},
	{"Code that has a *sql.Tx", plainTransaction},
	{"A program that knows nothing of gormlock", foreign},
	{"A scheduler in Java, and its table", shedLock},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	dsn := cmp.Or(os.Getenv("DATABASE_URL"), os.Getenv("GORMLOCK_TEST_DSN"))
	err := tour(ctx, &page{out: os.Stdout, colour: colourful(os.Stdout)}, dsn, chapters)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tour:", err)
		os.Exit(1)
	}
}

// tour tells the chapters on the server of dsn, or on one of its own. The error says what went wrong, also when a
// chapter ran to its end and showed something that is not right.
func tour(ctx context.Context, p *page, dsn string, chapters []chapter) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	began := time.Now()
	s, err := newStage(ctx, p, dsn)
	if err != nil {
		return err
	}
	defer func() {
		if closed := s.close(); err == nil {
			err = closed
		}
	}()
	p.title("gormlock: a guided tour", s.place)
	for i, c := range chapters {
		p.chapter(i+1, c.title)
		if err := c.run(s); err != nil {
			return fmt.Errorf("chapter %d, %s: %w", i+1, c.title, err)
		}
	}
	if err := s.left(); err != nil {
		return err
	}
	if p.wrong > 0 {
		return fmt.Errorf("not right: %d of %d outcomes, see NOT OK above", p.wrong, p.wrong+p.right)
	}
	p.end(time.Since(began))
	return nil
}

// end says where to read on.
func (p *page) end(took time.Duration) {
	p.heading(fmt.Sprintf("All %d outcomes are right, after %.1f s.", p.right, took.Seconds()))
	p.say("Where to read on:")
	p.code("README.md                what is guaranteed, what is not, and the traps")
	p.code("docs/choosing.md         which tool for which problem, and when none")
	p.code("docs/versions.md         version columns; docs/job-queues.md: claiming work, or holding it")
	p.code("docs/migrating-from-*    for Rails and Hibernate; docs/operations.md: poolers, failovers, timeouts")
	p.code("docs/observability.md    the page, the log, the metrics and the alerts")
	p.code("examples/tour/*.go       what you have just seen; one function is one chapter")
	p.code("examples                 whole programs")
	p.code("go doc .                 every function and option, and what holds when it fails")
	p.code("go doc ./lockkey         the same keys in SQL and Python; ./lockkey/compat for other programs' keys")
	p.code("go doc ./sessionlock     locks for work longer than a transaction: what is known, and what cannot be")
	p.code("go doc ./lease           locks with an end; docs/fencing.md: holders that wake up late")
	p.code("go run ./cmd/gormlock    who holds what, on your own server; doctor: what in it makes locks lie")
	p.code("go doc ./advisory        the same locks for code that holds a *sql.Tx, without GORM")
	p.code("go doc ./gormlocktest    for your own tests: hold a lock, wait until your code waits, see what it left")
}
