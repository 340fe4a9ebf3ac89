// Railsapp is a Rails program and a Go program on one database, at the same time: what a team has while it moves from the
// one to the other. Both change the same rows by lock_version, hold the same rows with with_lock and LockRow, and number
// the same invoices under one advisory lock. At the end the account adds up; and it is shown what it comes to when one of
// the two does not know of the other's rules.
//
//	go -C examples run ./railsapp
//
// The Rails side, shop.rb, is a real ActiveRecord in a Ruby process: make rails, or apt-get install ruby-activerecord
// ruby-pg, or gem install activerecord pg. Where there is none a stand-in sends the statements that ActiveRecord sent
// when they were recorded, and the first line says so. -standin asks for it.
//
// shop.go is the Go side. The program runs on the server of DATABASE_URL or GORMLOCK_TEST_DSN, in a schema of its own that
// it drops at the end, or, where neither is set, on a throw-away server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/examples/internal/place"
	"github.com/gormlock/gormlock/examples/internal/tally"
)

const (
	workers  = 4  // on each side
	each     = 60 // parts of a task, by each worker
	accounts = 3
	opening  = 1000 // what an account holds at the start
)

func main() {
	standIn := flag.Bool("standin", false, "do without Ruby")
	flag.Parse()
	place.Main("railsapp", func(ctx context.Context) error {
		return program(ctx, os.Stdout, place.Given(), *standIn || !hasRails(ctx))
	})
}

// program makes the place and shows it all in it.
func program(ctx context.Context, out io.Writer, dsn string, standIn bool) (err error) {
	p, err := newPlace(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Leave()) }()
	var other rails
	if standIn {
		other, err = newStandIn(ctx, p.Config)
	} else {
		other, err = startRails(ctx, p.Config)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.close()) }()
	return show(ctx, out, p, other)
}

// show lets both sides do all tasks, and fails if the account does not add up.
func show(ctx context.Context, out io.Writer, p *place.Place, other rails) error {
	say(out, "%s and Go, %d workers each, on %d accounts\n\n", other.name(), workers, accounts)
	all := make([]Account, 2*accounts)
	for i := range all {
		all[i].Balance = opening
	}
	if err := p.DB.WithContext(ctx).Create(&all).Error; err != nil {
		return err
	}
	var shared, unaware []int64
	for i := range all {
		if i < accounts {
			shared = append(shared, all[i].ID)
		} else {
			unaware = append(unaware, all[i].ID)
		}
	}
	say(out, "%-34s %9s %9s %9s\n", "", "Rails", "Go", "took")
	l := &ledger{out: out, place: p, other: other}
	if err := errors.Join(
		l.run(ctx, "deposits", "deposits", shared),
		l.run(ctx, "withdrawals", "withdrawals", shared),
		l.run(ctx, "invoices", "invoices", shared),
	); err != nil {
		return err
	}
	if err := l.addUp(ctx, shared); err != nil {
		return err
	}
	say(out, "\nThe same deposits by a Go program that does not know of lock_version:\n\n")
	return l.lose(ctx, unaware)
}

// ledger is what both sides say they did.
type ledger struct {
	out         io.Writer
	place       *place.Place
	other       rails
	writes      int64 // of accounts, each one version further
	moved       int64
	issued      map[string]int64
	rails, goes tally.Report
}

// run lets both sides do a task at the same time.
func (l *ledger) run(ctx context.Context, task, ofGo string, accounts []int64) error {
	began := time.Now()
	type done struct {
		tally.Report
		error
	}
	theirs := make(chan done, 1)
	go func() {
		r, err := l.other.perform(ctx, task, accounts)
		theirs <- done{r, err}
	}()
	var err error
	l.goes, err = perform(ctx, l.place.DB, ofGo, accounts)
	ended := <-theirs
	l.rails = ended.Report
	if err := errors.Join(err, ended.error); err != nil {
		return fmt.Errorf("%s: %w", task, err)
	}
	say(l.out, "%-34s %9d %9d %9s\n", ofGo, l.rails.Done, l.goes.Done, time.Since(began).Round(time.Millisecond))
	switch task {
	case "deposits":
		say(l.out, "%-34s %9d %9d\n", "  came too late, and made again", l.rails.Again, l.goes.Again)
		l.writes += l.rails.Done + l.goes.Done
		l.moved += l.rails.Amount + l.goes.Amount
	case "withdrawals":
		l.writes += l.rails.Done + l.goes.Done
		l.moved -= l.rails.Amount + l.goes.Amount
	case "invoices":
		l.issued = map[string]int64{"Rails": l.rails.Done, "Go": l.goes.Done}
	}
	return nil
}

// addUp compares what was done with what is stored.
func (l *ledger) addUp(ctx context.Context, ids []int64) error {
	db := l.place.DB.WithContext(ctx)
	var stored struct{ Balance, Versions int64 }
	err := db.Model(&Account{}).Where("id IN ?", ids).Select("sum(balance) AS balance, sum(lock_version) AS versions").Scan(&stored).Error
	if err != nil {
		return err
	}
	var numbers struct{ Count, Distinct, Last, Rails int64 }
	err = db.Raw(`SELECT count(*), count(DISTINCT number) AS distinct, max(number) AS last, count(*) FILTER (WHERE issued_by = 'Rails') AS rails FROM invoices`).
		Scan(&numbers).Error
	if err != nil {
		return err
	}
	say(l.out, "\n%-34s %9s %9s\n", "", "done", "stored")
	issued := l.issued["Rails"] + l.issued["Go"]
	return errors.Join(
		l.equal("balance", opening*int64(len(ids))+l.moved, stored.Balance),
		l.equal("versions of the accounts", l.writes, stored.Versions),
		l.equal("invoices", issued, numbers.Count),
		l.equal("  the last number", issued, numbers.Last),
		l.equal("  numbers that differ", issued, numbers.Distinct),
		l.equal("  issued by Rails", l.issued["Rails"], numbers.Rails),
	)
}

func (l *ledger) equal(what string, done, stored int64) error {
	if done != stored {
		return fmt.Errorf("%s: %d were done, %d are stored", what, done, stored)
	}
	say(l.out, "%-34s %9d %9d  it adds up\n", what, done, stored)
	return nil
}

// lose shows what becomes of deposits that overwrite each other. How much is lost is up to chance.
func (l *ledger) lose(ctx context.Context, ids []int64) error {
	if err := l.run(ctx, "deposits", "unaware deposits", ids); err != nil {
		return err
	}
	var stored int64
	if err := l.place.DB.WithContext(ctx).Model(&Account{}).Where("id IN ?", ids).Select("sum(balance)").Scan(&stored).Error; err != nil {
		return err
	}
	want := opening*int64(len(ids)) + l.rails.Amount + l.goes.Amount
	say(l.out, "%-34s %9d %9d  %d are lost, and nobody was told\n", "balance", want, stored, want-stored)
	say(l.out, "\nUntil every writer keeps the version the table can do it itself: gormlock.VersionTrigger.\n")
	trigger := gormlock.VersionTrigger("accounts", "lock_version")
	if err := l.place.DB.WithContext(ctx).Exec(trigger).Error; err != nil {
		return err
	}
	return l.keep(ctx, ids)
}

// keep shows that a trigger which moves the version lets Rails notice such writes, though not the unaware program.
func (l *ledger) keep(ctx context.Context, ids []int64) error {
	var before Account
	db := l.place.DB.WithContext(ctx)
	if err := db.First(&before, ids[0]).Error; err != nil {
		return err
	}
	if _, err := depositUnaware(db, ids[0], 1); err != nil {
		return err
	}
	err := db.Model(&before).Update("balance", 0).Error
	if !errors.Is(err, gormlock.ErrStale) {
		return fmt.Errorf("want a stale version, got %w", err)
	}
	say(l.out, "With it: %v\n", err)
	return nil
}

func say(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}
