// Package otelobserve records what happens to locks with OpenTelemetry: counters, the
// time that locks were waited for and held, and an event on the span of whoever waited.
// It needs the OpenTelemetry API only; without an SDK nothing is recorded.
//
//	o, err := otelobserve.New()
//	db.Use(gormlock.New(gormlock.WithObserver(o)))
//	m, err := sessionlock.Open(ctx, dsn, sessionlock.Observer(o))
//
// The instruments:
//
//	gormlock.lock.acquisitions    attempts, by gormlock.outcome: acquired, not_acquired, timed_out
//	gormlock.lock.wait.duration   seconds such an attempt took, by the same
//	gormlock.lock.hold.duration   seconds a lock was held
//	gormlock.lock.losses          locks lost
//	gormlock.write.refusals       writes refused, by gormlock.reason: stale, fenced
//	gormlock.claims               calls that claimed rows, or found none
//	gormlock.claim.rows           rows claimed
//	gormlock.transaction.retries  transactions that began again
//	gormlock.schedule.failures    ticks of a schedule that failed as often as they may
//	gormlock.job.attempts         attempts of jobs that have ended, by gormlock.outcome: done, failed, later, dead
//	gormlock.job.attempt.duration seconds such an attempt took, by the same
//	gormlock.job.takeovers        jobs taken from a worker whose lease had ended
//
// Each has db.system.name, gormlock.source (the package), and, if there is one,
// gormlock.mode and db.collection.name (the table). Names of keys are only on span
// events, unless [KeyLabel] maps them to a few labels.
//
// # Stability
//
// This package may still change before v1: names may move or go.
package otelobserve
