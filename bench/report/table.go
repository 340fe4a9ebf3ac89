package main

import (
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
	{what: "plugin installed, nothing of it used: create a row", beside: "without the plugin", benchmark: "Unused", unit: "ratio", format: "%.2f × the time", most: 1.02},
	{what: "the same", beside: "without the plugin", benchmark: "Unused", unit: "more-allocs", format: "%.0f allocations more"},
	{what: "versioned update, built", beside: "the model without the tag", benchmark: "VersionedUpdate", unit: "ratio", format: "%.2f × the time", most: 1.15},
	{what: "the same", beside: "the model without the tag", benchmark: "VersionedUpdate", unit: "more-allocs", format: "%.0f allocations more", most: 8},
	{what: "versioned update", beside: "plain update", benchmark: "RoundTrips", unit: "version", format: "%.0f round trips more"},
	{what: "lock on a statement's own transaction", beside: "without the lock", benchmark: "RoundTrips", unit: "own-transaction", format: "%.0f round trips more"},
	{what: "Transaction with two locks", beside: "db.Transaction", benchmark: "RoundTrips", unit: "Transaction", format: "%.0f round trips more"},
	{what: "two locks with a timeout in an open transaction", beside: "without the locks", benchmark: "RoundTrips", unit: "open-transaction", format: "%.0f round trips more", most: 1},
	{what: "session lock and release, 1,000 goroutines, 1 connection", beside: "pg_try_advisory_lock, pg_advisory_unlock on a pool of 90", benchmark: "SessionLock/goroutines=1000", unit: "ratio", format: "%.1f × the rate", least: 10},
	{what: "the same, 64 goroutines", beside: "the same", benchmark: "SessionLock/goroutines=64", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "the same, 8 goroutines", beside: "the same", benchmark: "SessionLock/goroutines=8", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "the same, 1 goroutine", beside: "the same", benchmark: "SessionLock/goroutines=1", unit: "ratio", format: "%.2f × the rate", least: 0.8},
	{what: "the same, 1 goroutine", beside: "goose's session locker, on a pool", benchmark: "GooseLock/goroutines=1", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "hand-off of a contended session lock between processes", beside: "a bare blocking pg_advisory_lock", benchmark: "SessionHandOff", unit: "ratio", format: "%.2f × the time", most: 1.5},
	{what: "fenced session lock and release, 1,000 goroutines", beside: "lock, upsert, unlock one by one on a pool of 90", benchmark: "SessionFenced/goroutines=1000", unit: "ratio", format: "%.1f × the rate", least: 5},
	{what: "lease acquired and released, 1 goroutine, nothing syncs to disk", beside: "an upsert and a delete by hand, without a token", benchmark: "Lease/peer=sql/goroutines=1", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "lease acquired and released, 1 goroutine, both sync to disk", beside: "an upsert and a delete by hand, without a token", benchmark: "Lease/peer=sql/goroutines=1/durable", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "lease acquired and released, 100 goroutines, nothing syncs to disk", beside: "an upsert and a delete by hand, without a token", benchmark: "Lease/peer=sql/goroutines=100", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "lease acquired and released, 100 goroutines, both sync to disk", beside: "an upsert and a delete by hand, without a token", benchmark: "Lease/peer=sql/goroutines=100/durable", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "lease acquired and released, 1 goroutine, nothing syncs to disk", beside: "redislock on a local Redis", benchmark: "Lease/peer=redislock/goroutines=1", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "lease acquired and released, 1 goroutine, both sync to disk", beside: "redislock on a local Redis", benchmark: "Lease/peer=redislock/goroutines=1/durable", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "lease acquired and released, 100 goroutines, nothing syncs to disk", beside: "redislock on a local Redis", benchmark: "Lease/peer=redislock/goroutines=100", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "lease acquired and released, 100 goroutines, both sync to disk", beside: "redislock on a local Redis", benchmark: "Lease/peer=redislock/goroutines=100/durable", unit: "ratio", format: "%.2f × the rate", none: true},
	{what: "10,000 leases of one process: renewal statements", benchmark: "LeaseHeld", unit: "renewals/s", format: "%.2f a second", none: true},
	{what: "the same: one renewal statement", benchmark: "LeaseHeld", unit: "ms/renewal", format: "%.0f ms", none: true},
	{what: "Claim 10 of 10,000", beside: "bare SQL", benchmark: "Claim10/ready=10000", unit: "x-bare", format: "%.2f × the time", most: 1.1},
	{what: "the bare SQL through GORM's Raw and Scan", beside: "bare SQL", benchmark: "Claim10/ready=10000", unit: "gorm-raw-x-bare", format: "%.2f × the time", none: true},
	{what: "Claim 10 of 1,000,000", beside: "bare SQL", benchmark: "Claim10/ready=1000000", unit: "x-bare", format: "%.2f × the time", most: 1.1},
	{what: "Claim 10 of 1,000,000", beside: "Claim 10 of 10,000", benchmark: "Claim10/ready=1000000", unit: "x-small", format: "%.2f × the time", most: 1.5},
	{what: "16 workers drain 100,000 jobs by Claim, 100 at a time", beside: "bare SQL", benchmark: "Drain", unit: "x-bare", format: "%.2f × the rate", least: 0.9},
	{what: "the same", beside: "River's fetch", benchmark: "Drain", unit: "x-river", format: "%.2f × the rate", least: 1},
}

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

var singular = strings.NewReplacer("allocations", "allocation", "round trips", "round trip")

// lines is the table, its head first.
func lines(found measured) [][]string {
	all := [][]string{{"what", "beside", "measured", "target", "met"}}
	for _, r := range rows {
		if value, target, met, ok := r.verdict(found); ok {
			all = append(all, []string{r.what, r.beside, value, target, met})
		}
	}
	return all
}

// page is docs/benchmarks.md.
func page(found measured) string {
	var b strings.Builder
	b.WriteString(`# Benchmarks

What is compared ran in turns on the same server in one run. Ratios are medians of the ratios of the rounds; times and
rates belong to the machine. Round trips and allocations are exact. The rows without a target are there to know.

`)
	fmt.Fprintf(&b, "    make bench\n\n%s. %s.\n\n", machine(), strings.Join(versions(found), ", "))
	for i, cells := range lines(found) {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	b.WriteString("\nPeers that are libraries are run as they are. The others are represented by the SQL they send, which the table says.\n")
	if sessionPlot(found) != "" {
		b.WriteString("\n![Session locks by goroutines](images/bench-session.svg)\n")
	}
	if claimPlot(found) != "" {
		b.WriteString("\n![Claims by backlog](images/bench-claim.svg)\n")
	}
	return b.String()
}

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
	for _, module := range []string{"gorm.io/gorm", "github.com/jackc/pgx/v5", "github.com/riverqueue/river", "github.com/pressly/goose/v3", "github.com/bsm/redislock"} {
		if out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", module).Output(); err == nil {
			all = append(all, module+" "+strings.TrimSpace(string(out)))
		}
	}
	return all
}
