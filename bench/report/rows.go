package main

import (
	"fmt"
	"strings"
)

// row is one line of the table: a value that a benchmark measures, and what it should be.
type row struct {
	what, beside    string
	benchmark, unit string
	format          string // of the value and of the bound
	most, least     float64
	none            bool   // there is no target
	second          string // a unit that is shown too, such as the 99th percentile
	itself          bool   // it is compared with gormlock itself
}

var rows = []row{
	{what: "plugin installed, nothing of it used: create a row", beside: "without the plugin", benchmark: "Unused", unit: "create", format: "%.2f × the time", most: 1.02},
	{what: "the same: find a row", beside: "without the plugin", benchmark: "Unused", unit: "find", format: "%.2f × the time", most: 1.02},
	{what: "the same: of create, save, update, find and delete the one with the most", beside: "without the plugin", benchmark: "Unused", unit: "most-more-allocs", format: "%.0f allocations more"},
	{what: "the same", beside: "without the plugin", benchmark: "Unused", unit: "most-more-trips", format: "%.0f round trips more"},
	{what: "an explicit db.Transaction that uses nothing of it", beside: "without the plugin", benchmark: "PlainTransaction", unit: "more-allocs", format: "%.0f allocations more", most: 4},
	{what: "modules in the graph of a program that uses gormlock", beside: "one that uses GORM and its driver", benchmark: "Modules", unit: "more", format: "%.0f modules more", most: 3},
	{what: "versioned update, built", beside: "the model without the tag", benchmark: "VersionedUpdate", unit: "ratio", format: "%.2f × the time", most: 1.15},
	{what: "the same", beside: "the model without the tag", benchmark: "VersionedUpdate", unit: "more-allocs", format: "%.0f allocations more", most: 8},
	{what: "versioned update, on a server", beside: "the model without the tag", benchmark: "VersionedUpdatePlain", unit: "ratio", format: "%.2f × the time", most: 1.15},
	{what: "the same", beside: "gorm.io/plugin/optimisticlock", benchmark: "VersionedUpdateSent", unit: "ratio", format: "%.2f × the time", none: true},
	{what: "the same", beside: "plain update", benchmark: "RoundTrips", unit: "version", format: "%.0f round trips more"},
	slice(10), slice(1000), slice(10_000), slice(50_000),
	{what: "lock on a statement's own transaction", beside: "without the lock", benchmark: "RoundTrips", unit: "own-transaction", format: "%.0f round trips more"},
	{what: "Transaction with two locks", beside: "db.Transaction", benchmark: "RoundTrips", unit: "Transaction", format: "%.0f round trips more"},
	{what: "1 lock in an open transaction", beside: "without the lock", benchmark: "RoundTrips", unit: "open-1", format: "%.0f round trips more", most: 1},
	{what: "the same, with a timeout", beside: "without the lock", benchmark: "RoundTrips", unit: "open-1-timeout", format: "%.0f round trips more", most: 1},
	{what: "100 locks in an open transaction", beside: "without the locks", benchmark: "RoundTrips", unit: "open-100", format: "%.0f round trips more", most: 1},
	{what: "the same, with a timeout", beside: "without the locks", benchmark: "RoundTrips", unit: "open-100-timeout", format: "%.0f round trips more", most: 1},
	locked("Transaction", 1, ""), locked("Transaction", 8, ""), locked("Transaction", 1, "/network"), locked("Transaction", 8, "/network"),
	locked("scope", 1, ""), locked("scope", 8, ""), locked("scope", 1, "/network"), locked("scope", 8, "/network"),
	{what: "LockRow, a change and an update of one hot row, 8 goroutines", beside: "SELECT … FOR UPDATE and the update in GORM", benchmark: "HotRow", unit: "ratio", format: "%.2f × the rate", least: 1},
	{what: "5,000 session locks held at once on a server with default settings", benchmark: "SessionHeld", unit: "connections", format: "%.0f connections", most: 2},
	{what: "session lock and release, 1,000 goroutines, 1 connection", beside: goPglock, benchmark: "SessionLock/goroutines=1000", unit: "ratio", format: "%.1f × the rate", least: 10},
	{what: "session lock and release, 64 goroutines", beside: goPglock, benchmark: "SessionLock/goroutines=64", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "session lock and release, 8 goroutines", beside: goPglock, benchmark: "SessionLock/goroutines=8", unit: "ratio", format: "%.2f × the rate", least: 1},
	{what: "session lock and release, 1 goroutine", beside: goPglock, benchmark: "SessionLock/goroutines=1", unit: "ratio", format: "%.2f × the rate", least: 1},
	{what: "session lock and release, 8 goroutines", beside: "goose's session locker, on a pool of 90", benchmark: "GooseLock/goroutines=8", unit: "ratio", format: "%.2f × the rate", least: 1},
	{what: "session lock and release, 1 goroutine", beside: "goose's session locker, on a pool of 90", benchmark: "GooseLock/goroutines=1", unit: "ratio", format: "%.2f × the rate", least: 1},
	{what: "hand-off of a contended session lock between processes", beside: "a bare blocking pg_advisory_lock", benchmark: "SessionHandOff", unit: "ratio", format: "%.2f × the time", most: 1.5},
	{what: "fenced session lock and release, 1,000 goroutines", beside: "lock, upsert, unlock one by one on a pool of 90", benchmark: "SessionFenced/goroutines=1000", unit: "ratio", format: "%.1f × the rate", least: 5},
	lease(1, "sql", ""), lease(1, "sql", "/durable"), lease(100, "sql", ""), lease(100, "sql", "/durable"),
	lease(1, "pglock", ""), lease(1, "pglock", "/durable"), lease(100, "pglock", ""), lease(100, "pglock", "/durable"),
	lease(1, "redislock", ""), lease(1, "redislock", "/durable"), lease(100, "redislock", ""), lease(100, "redislock", "/durable"),
	{what: "10,000 leases of one process: renewal statements", benchmark: "LeaseHeld", unit: "renewals/s", format: "%.2f a second", none: true},
	{what: "the same: one renewal statement", benchmark: "LeaseHeld", unit: "ms/renewal", format: "%.0f ms", none: true},
	{what: "Claim 10 of 10,000", beside: "bare SQL", benchmark: "Claim10/ready=10000", unit: "x-bare", format: "%.2f × the time", most: 1.1},
	{what: "the bare SQL through GORM's Raw and Scan", beside: "bare SQL", benchmark: "Claim10/ready=10000", unit: "gorm-raw-x-bare", format: "%.2f × the time", none: true},
	{what: "Claim 10 of 1,000,000", beside: "bare SQL", benchmark: "Claim10/ready=1000000", unit: "x-bare", format: "%.2f × the time", most: 1.1},
	{what: "Claim 10 of 1,000,000", beside: "the median of Claim 10 of 10,000", benchmark: "Claim10/ready=1000000", unit: "x-small", format: "%.2f × the time", most: 1.5},
	{what: "Claim 10 of 600,000 with an argument, 4 goroutines, a partial index", beside: "Claim with the literal", benchmark: "ClaimArgument", unit: "ratio", format: "%.2f × the rate", least: 0.9, itself: true},
	{what: "Claim 10 by 8 goroutines, seconds 26 to 30, settings of docs/own-queue.md", beside: "its seconds 1 to 5", benchmark: "ClaimSteady/settings=documented", unit: "ratio", format: "%.2f × the rate", least: 0.6, itself: true},
	{what: "the same, settings that PostgreSQL comes with", beside: "its seconds 1 to 5", benchmark: "ClaimSteady/settings=default", unit: "ratio", format: "%.2f × the rate", none: true, itself: true},
	{what: "16 workers drain 100,000 jobs by Claim, 100 at a time", beside: "bare SQL", benchmark: "Drain", unit: "x-bare", format: "%.2f × the rate", least: 0.9},
	{what: "the same", beside: "River's fetch", benchmark: "Drain", unit: "x-river", format: "%.2f × the rate", least: 1},
	{what: "work: jobs that do nothing, 16 workers", beside: "River's client", benchmark: "WorkJobs", unit: "x-river", format: "%.2f × the rate", least: 3},
	{what: "work: enqueue to start of the handler, idle, median", beside: "River's client", benchmark: "WorkLatency", unit: "x-river", format: "%.2f × the time", most: 1.5},
	{what: "the same, 99th percentile", benchmark: "WorkLatency", unit: "p99-ms", format: "%.1f ms", most: 20},
	{what: "work: last four seconds of a minute's load", beside: "its seconds 2 to 5", benchmark: "WorkSteady/pinned=false", unit: "ratio", format: "%.2f × the rate", least: 0.9, itself: true},
	{what: "the same, with a transaction open all the time", beside: "its seconds 2 to 5", benchmark: "WorkSteady/pinned=true", unit: "ratio", format: "%.2f × the rate", least: 0.9, itself: true},
	{what: "work.Enqueue in 100 concurrent transactions", beside: "the bare insert by GORM", benchmark: "WorkEnqueue", unit: "ratio", format: "%.2f × the rate", least: 0.95},
	{what: "work with OnePer over 10,000 values", beside: "work without", benchmark: "WorkValues/OnePer", unit: "ratio", format: "%.2f × the rate", least: 0.8},
	{what: "work with FairBy, one backlog beside many values", beside: "work without", benchmark: "WorkValues/FairBy", unit: "ratio", format: "%.2f × the rate", least: 0.8},
	latency("lock by Transaction, nobody else wants it", "transaction", 1), latency("lock by Transaction, nobody else wants it", "transaction", 64),
	latency("session lock, nobody else wants it", "session", 1), latency("session lock, nobody else wants it", "session", 64),
	latency("lease, nobody else wants it", "lease", 1), latency("lease, nobody else wants it", "lease", 64),
	latency("hand-off of one lock by Transaction", "transaction-contended", 1), latency("hand-off of one lock by Transaction", "transaction-contended", 64),
	latency("hand-off of one session lock", "session-contended", 1), latency("hand-off of one session lock", "session-contended", 64),
	latency("Claim 10 of 600,000", "claim", 1), latency("Claim 10 of 600,000", "claim", 64),
	grown("Claim 10 of 1,000,000, in turns", "Claim 10 of 10,000", "ClaimGrowth", "ready=1000000-x-small", "time"),
	grown("Claim 10 of 10,000,000, in turns", "Claim 10 of 10,000", "ClaimGrowth", "ready=10000000-x-small", "time"),
	grown("session lock and release, 8 goroutines, the manager holds 100", "it holds 1", "Scale/sessionlocks", "held=100-x", "rate"),
	grown("the same, the manager holds 1,000", "it holds 1", "Scale/sessionlocks", "held=1000-x", "rate"),
	grown("the same, the manager holds 10,000", "it holds 1", "Scale/sessionlocks", "held=10000-x", "rate"),
	grown("lease acquired and released, 8 goroutines, 1,000 others in the table", "1 other", "Scale/leases", "others=1000-x", "rate"),
	grown("the same, 10,000 others", "1 other", "Scale/leases", "others=10000-x", "rate"),
	grown("the same, 100,000 others", "1 other", "Scale/leases", "others=100000-x", "rate"),
	grown("a row of an updated slice of 1,000 versioned rows", "of a slice of 10", "Slices/rows=1000", "x-small", "time"),
	grown("a row of an updated slice of 10,000 versioned rows", "of a slice of 10", "Slices/rows=10000", "x-small", "time"),
	grown("a row of an updated slice of 50,000 versioned rows", "of a slice of 10", "Slices/rows=50000", "x-small", "time"),
}

// latency is the row for how long this many goroutines wait.
func latency(what, benchmark string, goroutines int) row {
	if goroutines == 1 {
		what += ", 1 goroutine: median, 99th percentile"
	} else {
		what += fmt.Sprintf(", %d goroutines: the same", goroutines)
	}
	return row{
		what: what, benchmark: fmt.Sprintf("Latency/%s/goroutines=%d", benchmark, goroutines),
		unit: "median-ms", second: "p99-ms", format: "%.3f ms", none: true,
	}
}

// grown is the row for what something costs at a larger size.
func grown(what, beside, benchmark, unit, of string) row {
	return row{what: what, beside: beside, benchmark: benchmark, unit: unit, format: "%.2f × the " + of, none: true, itself: true}
}

// slice is the row for an update of this many rows in one statement.
func slice(rows int) row {
	return row{
		what: fmt.Sprintf("update of a slice of %s versioned rows", grouped(float64(rows))), beside: "the model without the tag",
		benchmark: fmt.Sprintf("Slices/rows=%d", rows), unit: "ratio", format: "%.2f × the time", none: true,
	}
}

const goPglock = "go-pglock on a pool of 90: pg_try_advisory_lock, pg_advisory_unlock"

// locked is the row for a transaction, or a statement with a scope, that takes one lock and updates one row.
func locked(way string, goroutines int, network string) row {
	r := row{
		what: "one lock and one update by " + map[string]string{"Transaction": "Transaction", "scope": "WithXactLock on the update"}[way], unit: "ratio", format: "%.2f × the rate", least: 1,
		beside:    "a transaction, pg_advisory_xact_lock and the update in GORM",
		benchmark: fmt.Sprintf("Locked/%s/goroutines=%d%s", way, goroutines, network),
	}
	r.what += fmt.Sprintf(", %d goroutines", goroutines)
	if goroutines == 1 {
		r.what = strings.TrimSuffix(r.what, "s")
	}
	if network != "" {
		r.what, r.least = r.what+", 0.5 ms away", 1.25
	}
	return r
}

// lease is the row for leases that this many goroutines acquire and release.
func lease(goroutines int, peer, durable string) row {
	r := row{
		what: fmt.Sprintf("lease acquired and released, %d goroutines, nothing syncs to disk", goroutines), unit: "ratio", format: "%.2f × the rate", none: true,
		beside:    map[string]string{"sql": "an upsert and a delete by hand, without a token", "pglock": pglock, "redislock": "redislock on a local Redis"}[peer],
		benchmark: fmt.Sprintf("Lease/peer=%s/goroutines=%d%s", peer, goroutines, durable),
	}
	if goroutines == 1 {
		r.what = strings.Replace(r.what, "goroutines", "goroutine", 1)
	}
	if durable != "" {
		r.what = strings.Replace(r.what, "nothing syncs", "the servers sync", 1)
	}
	if goroutines == 1 && peer == "sql" {
		r.none, r.least = false, map[string]float64{"": 0.8, "/durable": 1}[durable]
	}
	return r
}

const pglock = "what cirello.io/pglock v1.16.1 sends without a heartbeat: nextval, an upsert, a delete"
