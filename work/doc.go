// Package work runs jobs that are rows of a table of your own: enqueued in the transaction that asks for them, handed to
// one worker at a time, tried again with growing pauses, and taken over when a worker dies.
//
//	type Mail struct {
//		work.Job
//		AccountID int64
//		To, Text  string
//	}
//
//	err := work.Migrate(db, &Mail{})
//	err = work.Enqueue(tx, &Mail{To: "ann@example.com"}) // workers hear of it after the commit
//
//	w, err := work.New(db, func(ctx context.Context, m *Mail) error { return send(ctx, m.To, m.Text) }, work.Workers(16))
//	err = w.Run(ctx) // until ctx ends
//
// It is for a program that has GORM, a table and a need that fits on a page. For cron, unique jobs and a web interface
// there is River.
//
// # States
//
//	            ┌───────── failed, Later ──────────┐
//	          later ──── RunAt is reached ───┐     │
//	                                         ▼     │
//	Enqueue ───────────────────────────► ready ─► running ─► done
//	                                         ▲     │   │
//	                                         └─────┘   └──► dead (last attempt, or Dead) ── Requeue ─► ready
//	                       given back, or the lease has ended
//
// # What holds
//
//   - Jobs are handed out by priority, the higher first, then by ID; [OnePer] and [FairBy] change that.
//   - An attempt is counted when it begins. A job whose worker dies is free when its lease ends, and a worker that lives
//     finds it within five seconds of that; if the attempt was its last, the job is dead.
//   - A job that was taken over can be completed only by its new worker: [Complete] is [gormlock.ErrStale] for the old one,
//     and a return of its handler counts for nothing. An effect in the transaction of Complete is therefore stored once.
//   - What has been done outside of that transaction may be done again by the next attempt.
//   - No job that is ready waits longer than five seconds while a worker has nothing to do, whatever was lost: a
//     notification, a process, a connection. Mostly it waits for about a millisecond.
//   - Claims seek past what was claimed before. Every five seconds, and when it hears of one, a worker looks behind itself
//     for older jobs: those given back, tried again or committed late. So a claim costs the same while a long transaction
//     keeps vacuum from cleaning the table.
//
// # What is not guaranteed
//
//   - A handler whose job was taken over is told by its context, but a process that was stopped cannot be told in time.
//   - Workers take their statements from the pool of db. A pool whose connections all stay busy in handlers for longer
//     than a lease keeps renewals from being sent: leave one free.
//   - Priorities are levels. Claims cost by the number of levels and queues in use, so use few.
//   - What is done stays in the table, out of the way of claims. Delete it when nobody wants to look at it:
//     DELETE FROM mails WHERE state = 'done' AND updated_at < now() - interval '7 days'.
//   - Where gormlock does not see the end of the enqueuing transaction ([gormlock.PlainTransactions], or a *sql.Tx of your
//     own) nobody is woken, and the job is found by polling.
//
// # Stability
//
// This package may still change before v1: names may move or go.
package work
