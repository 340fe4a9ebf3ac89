// Tour is a guided run over the features of gormlock: each chapter does a thing on a real PostgreSQL, says why the
// outcome is right, and checks that it is.
//
//	go -C examples run ./tour          the three things to see first
//	ALL=1 go -C examples run ./tour    everything
//
// It runs on the server of DATABASE_URL or GORMLOCK_TEST_DSN, in a schema of its own that it drops at the end, or,
// where neither is set, on a throw-away server. It exits with 1 when anything does not come out as shown.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/gormlock/gormlock/examples/internal/place"
)

// chapter is one feature. It fails by an error where it cannot go on, and by stage.check where an outcome is wrong.
type chapter struct {
	title string
	run   func(*stage) error
}

// chapters are told in this order. The first of them are what a newcomer must see: a lost update that is caught, workers that
// never get one job twice, and a late writer that is refused.
var chapters = []chapter{
	{"Two people, one document", versions},
	{"Work for several workers", claim},
	{"A lock with an end, and a holder that wakes up late", leases},
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
	{"Work while the row is locked", holding},
	{"Jobs, and the loop around them", jobs},
	{"What else a version can do", expectations},
	{"Tables that are made, and models that are checked", tables},
	{"Tables without a version, writers without one", unversionedTables},
	{"Two people, one form", merging},
	{"Sixteen writers, one row", hotRow},
	{"A lock longer than a transaction", session},
	{"Two locks longer than a transaction", several},
	{"One leads, one runs each tick, two share a place", leaders},
	{"A number for each transaction", fences},
	{"A request that arrives twice", onceOnly},
	{"Who holds what", looking},
	{"Told as it happens", events},
	{"What was not done is said", refusals},
	{"Code that has a *sql.Tx", plainTransaction},
	{"A program that does not use gormlock", foreign},
	{"A scheduler in Java, and its table", shedLock},
}

// opening is how many chapters are told unless all are asked for.
const opening = 3

// asked are the chapters to tell: all of them where ALL is set.
func asked() []chapter {
	if os.Getenv("ALL") != "" {
		return chapters
	}
	return chapters[:opening]
}

func main() {
	place.Main("tour", func(ctx context.Context) error {
		return tour(ctx, &page{out: os.Stdout, colour: colourful(os.Stdout)}, place.Given(), asked())
	})
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
	p.end(time.Since(began), len(chapters))
	return nil
}

// end says how to go on.
func (p *page) end(took time.Duration, told int) {
	p.heading(fmt.Sprintf("All %d outcomes are right, after %.1f s.", p.right, took.Seconds()))
	if left := len(chapters) - told; left > 0 {
		p.say("There are %d more chapters, about locks, queues, sessions, what is refused and what it costs:", left)
		p.code("make demo ALL=1")
	}
	p.say("Where to read on:")
	p.code("docs/index.md          the guides, by what you want to do")
	p.code("docs/overview.md       all features on one page")
	p.code("docs/guarantees.md     what is promised, what is not, and the tests that show it")
	p.code("examples               whole programs; examples/tour has one function for each chapter")
	p.code("go doc .               every function and option, and what holds when it fails")
	p.code("go run ./cmd/gormlock  who holds what, on your own server")
}
