// Hibernateapp is a Java program on Hibernate and ShedLock and a Go program on one database, at the same time. Both change
// the same rows by @Version, hold the same rows with PESSIMISTIC_WRITE and LockRow, keep the lines of an order within its
// limit by OPTIMISTIC_FORCE_INCREMENT and Touch, and run a nightly job once between them under @SchedulerLock. At the
// end the account adds up.
//
//	go -C examples run ./hibernateapp
//
// There is no Java here: java.go sends the statements that Hibernate 6 and ShedLock send, by their documentation and
// source. bank.go is the Go side. The program runs on the server of DATABASE_URL or GORMLOCK_TEST_DSN, in a schema of its
// own that it drops at the end, or, where neither is set, on a throw-away server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gormlock/gormlock/examples/internal/place"
	"github.com/gormlock/gormlock/examples/internal/tally"
)

const (
	workers = 4  // on each side
	each    = 60 // parts of a task, by each worker
	rows    = 3  // accounts, and orders
	opening = 1000
	room    = 400 // how much the lines of an order may come to
	nights  = workers + each - 1
)

// The tasks.
const (
	deposits    = "deposits, @Version"
	withdrawals = "withdrawals, PESSIMISTIC_WRITE"
	orderLines  = "order lines, OPTIMISTIC_FORCE_INCREMENT"
	nightly     = "nightly jobs, @SchedulerLock"
)

func main() {
	place.Main("hibernateapp", func(ctx context.Context) error { return show(ctx, os.Stdout, place.Given()) })
}

// show lets both sides do all tasks, and fails if the account does not add up.
func show(ctx context.Context, out io.Writer, dsn string) (err error) {
	p, err := newPlace(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Leave()) }()
	theirs, err := newJava(ctx, p.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, theirs.close()) }()
	ours, err := newBank(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	for range rows {
		if err := errors.Join(ours.db.Create(&Account{Balance: opening}).Error, ours.db.Create(&Order{}).Error); err != nil {
			return err
		}
	}
	say(out, "A stand-in for Java, with the statements of Hibernate 6 and ShedLock, and Go, %d workers each\n\n", workers)
	say(out, "%-42s %9s %9s %9s\n", "", "Java", "Go", "took")
	did := map[string][2]tally.Report{}
	for _, task := range []string{deposits, withdrawals, orderLines, nightly} {
		began := time.Now()
		java, goes, err := both(ctx, task, theirs, ours)
		if err != nil {
			return fmt.Errorf("%s: %w", task, err)
		}
		did[task] = [2]tally.Report{java, goes}
		say(out, "%-42s %9d %9d %9s\n", task, java.Done, goes.Done, time.Since(began).Round(time.Millisecond))
		if again := java.Again + goes.Again; again > 0 {
			say(out, "%-42s %9d %9d\n", "  came too late, and made again", java.Again, goes.Again)
		}
	}
	return addUp(out, ours, did)
}

// both lets both sides do a task at the same time.
func both(ctx context.Context, task string, theirs *java, ours *bank) (java, goes tally.Report, err error) {
	type done struct {
		tally.Report
		error
	}
	other := make(chan done, 1)
	go func() {
		r, err := theirs.perform(ctx, task)
		other <- done{r, err}
	}()
	goes, err = ours.perform(ctx, task)
	ended := <-other
	return ended.Report, goes, errors.Join(err, ended.error)
}

// addUp compares what was done with what is stored.
func addUp(out io.Writer, ours *bank, did map[string][2]tally.Report) error {
	var stored struct{ Balance, Versions, OrderVersions, Lines, Amount, Largest, Nights, Runs, ByJava int64 }
	err := ours.db.Raw(`SELECT
		(SELECT sum(balance) FROM accounts) AS balance, (SELECT sum(version) FROM accounts) AS versions,
		(SELECT sum(version) FROM orders) AS order_versions, (SELECT count(*) FROM lines) AS lines, (SELECT sum(amount) FROM lines) AS amount,
		(SELECT max(s) FROM (SELECT sum(amount) s FROM lines GROUP BY order_id)  o) AS largest,
		(SELECT count(DISTINCT night) FROM runs) AS nights, (SELECT count(*) FROM runs) AS runs,
		(SELECT count(*) FROM runs WHERE done_by = 'Java') AS by_java`).Scan(&stored).Error
	if err != nil {
		return err
	}
	done := func(task string) int64 { return did[task][0].Done + did[task][1].Done }
	amount := func(task string) int64 { return did[task][0].Amount + did[task][1].Amount }
	say(out, "\n%-42s %9s %9s\n", "", "done", "stored")
	for _, line := range []struct {
		what         string
		done, stored int64
	}{
		{"balance of the accounts", rows*opening + amount(deposits) - amount(withdrawals), stored.Balance},
		{"  their versions", done(deposits) + done(withdrawals), stored.Versions},
		{"lines of the orders", done(orderLines), stored.Lines},
		{"  their amount", amount(orderLines), stored.Amount},
		{"  versions of the orders", done(orderLines), stored.OrderVersions},
		{"runs of the nightly job", nights, stored.Runs},
		{"  nights that had one", nights, stored.Nights},
		{"  run by Java", did[nightly][0].Done, stored.ByJava},
	} {
		if line.done != line.stored {
			return fmt.Errorf("%s: %d were done, %d are stored", line.what, line.done, line.stored)
		}
		say(out, "%-42s %9d %9d  it adds up\n", line.what, line.done, line.stored)
	}
	say(out, "\nThe largest order comes to %d, the limit is %d.\n", stored.Largest, room)
	if stored.Largest > room {
		return errors.New("an order is over its limit")
	}
	return nil
}

func say(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}
