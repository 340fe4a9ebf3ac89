// Package work runs jobs that are rows of a table of your own: enqueued in the transaction that asks for them, handed to one
// worker at a time, tried again with growing pauses, and taken over when a worker dies.
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
// Use it if your program has GORM and its jobs need no more than this page describes. For cron, unique jobs and a web
// interface use River.
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
//   - Jobs are handed out by priority, higher ones first, then by ID. [OnePer] and [FairBy] change that.
//   - An attempt is counted when it begins. If a worker dies, its jobs are free when their leases end, and another worker
//     finds them within five seconds. If the attempt was the last, the job is dead.
//   - If a job was taken over, only its new worker can complete it. For the old one [Complete] is [gormlock.ErrStale],
//     and the result of its handler does not count. So an effect in the transaction of Complete is stored once.
//   - What a handler does outside of that transaction may be done again by the next attempt.
//   - No ready job waits longer than five seconds while a worker has nothing to do, even if a notification, a process or a
//     connection is lost. Usually it waits for about a millisecond.
//   - A job that the server refuses to change, because of a CHECK, a trigger or a policy, does not hold up others. The log names it. It is
//     tried again after about four seconds, and then after longer and longer pauses, up to about half a minute, or more if there are many
//     such jobs. With [OnePer], the later jobs of its value wait. When the server refuses a statement about many jobs, the worker looks for the
//     job that causes it: it tries smaller and smaller parts, for about a second at a time. While the server accepts no job at all, the worker
//     tries all in one statement every four seconds.
//   - If the server refuses the text for LastError, because it is too long or breaks a constraint, the outcome is stored with the beginning of
//     the text, or without it, and the log has all of it.
//   - An error that may also hit all jobs, such as a timeout, a lock, a conflict or a full disk, counts as the error of one job only if the
//     server says in which function, or at which row, it occurred. The server does not say so for a trigger in C, or for one of its own functions
//     that a CHECK calls. If a trigger waits, the other jobs wait too, until the server's timeout. So set one. If it is a third of a lease or
//     longer, leases are lost.
//   - Claims start after the jobs that were claimed before. Every five seconds, and after a wake-up, a worker looks for older jobs that were
//     released, are tried again or were committed late. So a claim costs the same while a long transaction keeps vacuum
//     from cleaning the table.
//   - When the context of [Worker.Run] ends, jobs that have not begun are released at once.
//
// # What is not guaranteed
//
//   - The context of a handler ends when its job is taken over, and when no renewal of its lease was confirmed in time. The worker
//     uses its own clocks for that, as package lease does. A stopped process cannot notice it until it goes on.
//   - Workers use the pool of db. If handlers keep all of its connections busy for longer than a lease, renewals cannot be
//     sent: leave one free.
//   - The cost of a claim grows with the number of priorities and queues in use, so use few.
//   - Done jobs stay in the table, where they do not slow claims down. Delete them when nobody needs them:
//     DELETE FROM mails WHERE state = 'done' AND updated_at < now() - interval '7 days'.
//   - If gormlock does not see the end of the enqueuing transaction ([gormlock.PlainTransactions], or a *sql.Tx of your own),
//     no worker is woken, and the job is found by polling.
//
// # Stability
//
// This package may still change before v1: names may move or go.
package work
