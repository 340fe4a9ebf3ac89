package main

import (
	"fmt"
	"io"
	"time"

	"gorm.io/gorm"
)

// tally is what one worker did.
type tally struct {
	Worker                 string
	Done, Retried, GivenUp int
}

func (t tally) show(out io.Writer) {
	say(out, "%-6s  %6d  %7d  %8d\n", t.Worker, t.Done, t.Retried, t.GivenUp)
}

// say prints for whoever watches.
func say(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}

// summary shows who did what, and fails if anything was lost or done twice.
func summary(db *gorm.DB, out io.Writer, o options, took time.Duration) error {
	var workers []tally
	err := db.Raw(`SELECT worker,
		count(*) FILTER (WHERE outcome = 'done') AS done,
		count(*) FILTER (WHERE outcome = 'retry') AS retried,
		count(*) FILTER (WHERE outcome = 'dead') AS given_up
		FROM runs GROUP BY worker ORDER BY length(worker), worker`).Scan(&workers).Error
	if err != nil {
		return err
	}
	say(out, "\nworker    done  retried  given up\n")
	all := tally{Worker: "all"}
	for _, w := range workers {
		w.show(out)
		all.Done, all.Retried, all.GivenUp = all.Done+w.Done, all.Retried+w.Retried, all.GivenUp+w.GivenUp
	}
	all.show(out)
	var facts struct{ Attempts, Jobs, Done, Dead, DoneTwice, TooMany, Died int }
	err = db.Raw(`SELECT sum(attempts) AS attempts, count(*) AS jobs,
		count(*) FILTER (WHERE state = 'done') AS done, count(*) FILTER (WHERE state = 'dead') AS dead,
		count(*) FILTER (WHERE attempts > max_attempts) AS too_many,
		count(*) FILTER (WHERE state = 'dead' AND last_error = 'the worker died') AS died,
		(SELECT count(*) - count(DISTINCT job_id) FROM runs WHERE outcome = 'done') AS done_twice FROM jobs`).Scan(&facts).Error
	if err != nil {
		return err
	}
	short := facts.Attempts - all.Done - all.Retried - all.GivenUp
	say(out, "\n%d jobs in %.1f s: %d done, %d given up. %d claims, %d of them cut short by a kill and taken over.\n",
		facts.Jobs, took.Seconds(), facts.Done, facts.Dead, facts.Attempts, short)
	switch {
	case facts.Jobs != o.jobs || facts.Done+facts.Dead != o.jobs:
		return fmt.Errorf("%d jobs were enqueued, %d are there, %d done and %d given up", o.jobs, facts.Jobs, facts.Done, facts.Dead)
	case facts.Done != all.Done || facts.DoneTwice > 0:
		return fmt.Errorf("%d jobs are done, by %d runs", facts.Done, all.Done)
	case facts.Dead != all.GivenUp+facts.Died:
		return fmt.Errorf("%d jobs are dead, %d were given up and %d died with their worker", facts.Dead, all.GivenUp, facts.Died)
	case facts.TooMany > 0:
		return fmt.Errorf("%d jobs were tried too often", facts.TooMany)
	}
	say(out, "Every job was done once or given up, none was lost, none was done twice.\n")
	return nil
}
