package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// row is one line of the table: a value that a benchmark measures, and what it should be.
type row struct {
	what, beside    string
	benchmark, unit string
	format          string // of the value and of the bound
	most, least     float64
	none            bool // there is no target
}

var rows = []row{
	{what: "plugin installed, nothing of it used: create a row", beside: "without the plugin", benchmark: "Unused", unit: "create", format: "%.2f × the time", most: 1.02},
	{what: "the same: find a row", beside: "without the plugin", benchmark: "Unused", unit: "find", format: "%.2f × the time", most: 1.02},
	{what: "the same: of create, save, update, find and delete the one with the most", beside: "without the plugin", benchmark: "Unused", unit: "most-more-allocs", format: "%.0f allocations more"},
	{what: "the same", beside: "without the plugin", benchmark: "Unused", unit: "most-more-trips", format: "%.0f round trips more"},
	{what: "versioned update, built", beside: "the model without the tag", benchmark: "VersionedUpdate", unit: "ratio", format: "%.2f × the time", most: 1.15},
	{what: "the same", beside: "the model without the tag", benchmark: "VersionedUpdate", unit: "more-allocs", format: "%.0f allocations more", most: 8},
	{what: "versioned update, on a server", beside: "gorm.io/plugin/optimisticlock", benchmark: "VersionedUpdateSent", unit: "ratio", format: "%.2f × the time", none: true},
	{what: "the same", beside: "plain update", benchmark: "RoundTrips", unit: "version", format: "%.0f round trips more"},
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
	{what: "session lock and release, 8 goroutines", beside: goPglock, benchmark: "SessionLock/goroutines=8", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "session lock and release, 1 goroutine", beside: goPglock, benchmark: "SessionLock/goroutines=1", unit: "ratio", format: "%.2f × the rate", least: 0.8},
	{what: "session lock and release, 8 goroutines", beside: "goose's session locker, on a pool of 90", benchmark: "GooseLock/goroutines=8", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "session lock and release, 1 goroutine", beside: "goose's session locker, on a pool of 90", benchmark: "GooseLock/goroutines=1", unit: "ratio", format: "%.2f × the rate", none: true},
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
	{what: "Claim 10 of 600,000 with an argument, 4 goroutines, a partial index", beside: "Claim with the literal", benchmark: "ClaimArgument", unit: "ratio", format: "%.2f × the rate", least: 0.9},
	{what: "16 workers drain 100,000 jobs by Claim, 100 at a time", beside: "bare SQL", benchmark: "Drain", unit: "x-bare", format: "%.2f × the rate", least: 0.9},
	{what: "the same", beside: "River's fetch", benchmark: "Drain", unit: "x-river", format: "%.2f × the rate", least: 1},
	{what: "work: jobs that do nothing, 16 workers", beside: "River's client", benchmark: "WorkJobs", unit: "x-river", format: "%.2f × the rate", least: 3},
	{what: "work: enqueue to start of the handler, idle, median", beside: "River's client", benchmark: "WorkLatency", unit: "x-river", format: "%.2f × the time", most: 1.5},
	{what: "the same, 99th percentile", benchmark: "WorkLatency", unit: "p99-ms", format: "%.1f ms", most: 20},
	{what: "work: last four seconds of a minute's load", beside: "its seconds 2 to 5", benchmark: "WorkSteady/pinned=false", unit: "ratio", format: "%.2f × the rate", least: 0.9},
	{what: "the same, with a transaction open all the time", beside: "its seconds 2 to 5", benchmark: "WorkSteady/pinned=true", unit: "ratio", format: "%.2f × the rate", least: 0.9},
	{what: "work.Enqueue in 100 concurrent transactions", beside: "the bare insert by GORM", benchmark: "WorkEnqueue", unit: "ratio", format: "%.2f × the rate", least: 0.95},
	{what: "work with OnePer over 10,000 values", beside: "work without", benchmark: "WorkValues/OnePer", unit: "ratio", format: "%.2f × the rate", least: 0.8},
	{what: "work with FairBy, one backlog beside many values", beside: "work without", benchmark: "WorkValues/FairBy", unit: "ratio", format: "%.2f × the rate", least: 0.8},
}

const goPglock = "go-pglock on a pool of 90: pg_try_advisory_lock, pg_advisory_unlock"

// locked is the row of a transaction, or of a statement with a scope, that takes one lock and updates one row.
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

// lease is the row of leases that so many goroutines acquire and release.
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
		r.what = strings.Replace(r.what, "nothing syncs", "both sync", 1)
	}
	return r
}

const pglock = "what cirello.io/pglock v1.16.1 sends without a heartbeat: nextval, an upsert, a delete"

// verdict is the value in words, the target, and whether it is met; ok is false where nothing was measured.
func (r row) verdict(found measured) (value, target, met string, ok bool) {
	v, ok := found.of(r.benchmark, r.unit)
	if !ok {
		return "", "", "", false
	}
	value = fmt.Sprintf(r.format, v)
	if less, ok := strings.CutPrefix(value, "-"); ok {
		value = strings.Replace(less, " more", " fewer", 1)
	}
	if strings.HasPrefix(value, "1 ") {
		value = singular.Replace(value)
	}
	yes := v <= r.most
	switch {
	case r.none:
		return value, "", "", true
	case r.least > 0:
		target, yes = fmt.Sprintf("≥ %v", r.least), v >= r.least
	default:
		target = fmt.Sprintf("≤ %v", r.most)
	}
	if yes {
		return value, target, "yes", true
	}
	return value, target, "no", true
}

var singular = strings.NewReplacer("allocations", "allocation", "round trips", "round trip", "connections", "connection")

// rounds is how many rounds a ratio is the median of, and their quartiles; empty for what is not a ratio.
func (r row) rounds(found measured) string {
	n, ok := found.of(r.benchmark, r.unit+"-rounds")
	if !ok {
		return ""
	}
	number, _, _ := strings.Cut(r.format, " ")
	first, _ := found.of(r.benchmark, r.unit+"-q1")
	third, _ := found.of(r.benchmark, r.unit+"-q3")
	return fmt.Sprintf("%s: "+number+"–"+number, grouped(n), first, third)
}

// lines is the table, its head first.
func lines(found measured) [][]string {
	all := [][]string{{"what", "beside", "measured", "rounds: quartiles", "target", "met"}}
	for _, r := range rows {
		if value, target, met, ok := r.verdict(found); ok {
			all = append(all, []string{r.what, r.beside, value, r.rounds(found), target, met})
		}
	}
	return all
}

// missing are the rows that the run did not measure.
func missing(found measured) []string {
	var all []string
	for _, r := range rows {
		if _, ok := found.of(r.benchmark, r.unit); !ok {
			all = append(all, r.benchmark+" "+r.unit)
		}
	}
	return all
}

// behind are the rows in which gormlock does less a second than what stands beside it.
func behind(found measured) [][]string {
	all := [][]string{{"what", "beside", "measured"}}
	for _, r := range rows {
		value, _, _, ok := r.verdict(found)
		if v, _ := found.of(r.benchmark, r.unit); ok && v < 1 && strings.HasSuffix(r.format, "× the rate") {
			all = append(all, []string{r.what, r.beside, value})
		}
	}
	return all
}

// page is docs/benchmarks.md.
func page(found measured) string {
	var b strings.Builder
	b.WriteString(`# Benchmarks

What is compared ran in turns in one run, on the same server where both have one. A ratio is the median of the ratios of
the rounds; beside it stands how many rounds there were, and between which two values the middle half of them lies: where
the target lies there too, more than a quarter of the rounds miss it. Times and rates belong to the machine. Round trips
and connections are exact, allocations are the means of 500 statements. The rows without a target are there to know.

`)
	fmt.Fprintf(&b, "    make bench\n\n%s. %s.\n\n", machine(), strings.Join(versions(found), ", "))
	b.WriteString(markdown(lines(found)))
	if rest := missing(found); len(rest) > 0 {
		b.WriteString("\nNot measured in this run: " + strings.Join(rest, "; ") + ".\n")
	}
	b.WriteString(peers)
	if sessionPlot(found) != "" {
		b.WriteString("\n![Session locks by goroutines](images/bench-session.svg)\n")
	}
	if claimPlot(found) != "" {
		b.WriteString("\n![Claims by backlog](images/bench-claim.svg)\n")
	}
	return b.String()
}

func markdown(table [][]string) string {
	var b strings.Builder
	for i, cells := range table {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	return b.String()
}

const peers = `
optimisticlock, go-pglock, redislock and goose's session locker run as they are, River's fetch is the statement of its own driver, and River's
client is its own. Of cirello.io/pglock v1.16.1 only the statements run: its client sends a heartbeat with each lock, at once, and the
release of a lock that is held for less than a millisecond would measure how that is cancelled.
etcd is not run: what its locks are worth, and cost, is a cluster of three machines or more, and this is one.
`

func machine() string {
	cpu := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.SplitSeq(string(info), "\n") {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				cpu = strings.TrimLeft(name, "\t: ")
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d × %s, %s", time.Now().Format("2006-01-02"), runtime.NumCPU(), cpu, runtime.GOOS)
}

func versions(found measured) []string {
	all := []string{strings.Replace(runtime.Version(), "go", "Go ", 1)}
	if v, ok := found.of("Server", "version-num"); ok {
		all = append(all, fmt.Sprintf("PostgreSQL %d.%d", int(v)/10000, int(v)%10000))
	}
	if v, ok := found.of("Server", "redis-version-num"); ok {
		all = append(all, fmt.Sprintf("Redis %d.%d.%d", int(v)/10000, int(v)/100%100, int(v)%100))
	}
	for _, module := range []string{"gorm.io/gorm", "gorm.io/plugin/optimisticlock", "github.com/jackc/pgx/v5", "github.com/allisson/go-pglock/v3", "github.com/riverqueue/river", "github.com/pressly/goose/v3", "github.com/bsm/redislock", "github.com/redis/go-redis/v9"} {
		if out, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Version}}", module).Output(); err == nil {
			all = append(all, module+" "+strings.TrimSpace(string(out)))
		}
	}
	return all
}
