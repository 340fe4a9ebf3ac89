package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const output = `goos: linux
BenchmarkClaim10/ready=10000-2         	       3	 140000000 ns/op	       100.0 bare-µs	       105.0 claim-µs	         1.050 x-bare	         1.012 x-bare-q1	         1.104 x-bare-q3	       900.0 x-bare-rounds
BenchmarkClaim10/ready=1000000-2       	       3	 140000000 ns/op	       100.0 bare-µs	       120.0 claim-µs	         1.200 x-bare	         0.9000 x-small
BenchmarkUnused-2                      	       3	         1.01 create	        -1.000 most-more-allocs	         0 most-more-trips
BenchmarkRoundTrips-2                  	       3	         1.000 open-100	         2.000 open-100-timeout	         0 version
BenchmarkVersionedUpdatePlain-2        	       3	         1.061 ratio	         1.010 ratio-q1	         1.120 ratio-q3	       100.0 ratio-rounds
BenchmarkLatency/session/goroutines=1-2	       3	         0.05123 median-ms	         0.4213 p99-ms
BenchmarkClaimGrowth-2                 	       3	      5000 ready=10000/s	         0.9000 ready=1000000-x	         1.111 ready=1000000-x-small	         0.8000 ready=10000000-x	         1.250 ready=10000000-x-small
BenchmarkScale/leases-2                	       3	      5234 others=1/s	         0.9500 others=1000-x	         1.000 others=10000-x	         1.010 others=100000-x
BenchmarkScale/sessionlocks-2          	       3	     36871 held=1/s	         0.9000 held=100-x	         0.6000 held=1000-x	         0.2000 held=5000-x	         0.1000 held=10000-x
BenchmarkScale/rows-2                  	       3	      1834 rows=1/s	         9.100 rows=10-x	         48.20 rows=100-x	         81.00 rows=1000-x	         87.00 rows=10000-x
BenchmarkSessionHeld-2                 	       3	         1.000 connections
BenchmarkServer-2                      	       3	     70015 redis-version-num	    150018 version-num
BenchmarkLease/peer=pglock/goroutines=1/durable-2	 3	     300.0 ours/s	     375.0 peer/s	         0.8000 ratio	         0.7500 ratio-q1	         1.000 ratio-q3	        21.00 ratio-rounds
BenchmarkSessionLock/goroutines=1-2    	1000000000	     10000 ours/s	     11000 peer/s	         0.9000 ratio
BenchmarkSessionLock/goroutines=1000-2 	1000000000	    110000 ours/s	     10000 peer/s	        11.00 ratio	      9.512 ratio-q1	      12.48 ratio-q3	      1021 ratio-rounds
PASS
`

func TestReport(t *testing.T) {
	t.Parallel()
	found := parse([]byte(output))
	text := page(found)
	for _, want := range []string{
		"| what | beside | measured | rounds: quartiles | target | met |\n|---|---|---|---|---|---|\n",
		"| Claim 10 of 10,000 | bare SQL | 1.05 × the time | 900: 1.01–1.10 | ≤ 1.1 | yes |",
		"| Claim 10 of 1,000,000 | bare SQL | 1.20 × the time |  | ≤ 1.1 | no |",
		"| Claim 10 of 1,000,000 | the median of Claim 10 of 10,000 | 0.90 × the time |  | ≤ 1.5 | yes |",
		"| without the plugin | 1 allocation fewer |  | ≤ 0 | yes |",
		"| the same | without the plugin | 0 round trips more |  | ≤ 0 | yes |",
		"| 100 locks in an open transaction | without the locks | 1 round trip more |  | ≤ 1 | yes |",
		"| the same, with a timeout | without the locks | 2 round trips more |  | ≤ 1 | no |",
		"| 1 connection |  | ≤ 2 | yes |",
		"| lease acquired and released, 1 goroutine, the servers sync to disk | what cirello.io/pglock v1.16.1 sends without a heartbeat: nextval, an upsert, a delete | 0.80 × the rate | 21: 0.75–1.00 |  |  |",
		"go-pglock on a pool of 90: pg_try_advisory_lock, pg_advisory_unlock | 11.0 × the rate | 1,021: 9.5–12.5 | ≥ 10 | yes |",
		"PostgreSQL 15.18, Redis 7.0.15, ",
		"\nNot measured in this run: Unused find; PlainTransaction more-allocs; ",
		"| session lock, nobody else wants it, 1 goroutine: median, 99th percentile |  | 0.051 ms, 0.421 ms |  |  |  |",
		"| the same, the manager holds 10,000 | it holds 1 | 0.10 × the rate |  |  |  |",
		"images/bench-session.svg", "images/bench-cost.svg", "images/bench-growth.svg",
		"# Benchmarks\n\n- An update with a version takes 1.06 × the time of one without, and makes 0 round trips more.\n",
		"\n- Session locks on one connection run at 11.0 × the rate of go-pglock on a pool of 90 with 1,000 goroutines, and at 0.90 × the rate with one.\n",
		"\n- A claim of 10 jobs takes 1.20 × the time of bare SQL, and with 10 million jobs that are ready 1.25 × the time that it takes with 10 thousand.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "| River's fetch |") {
		t.Error("a row that was not measured is in the table")
	}
	if strings.Contains(text, "by `Transaction` run at") {
		t.Error("a sentence about what was not measured is on the page")
	}
	if strings.Index(text, "images/") > strings.Index(text, "| what |") {
		t.Error("the table stands before the pictures")
	}
	for _, p := range plots {
		svg := p.draw(found)
		if svg == "" {
			t.Errorf("%s is not drawn", p.file)
		}
		decoder := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, svg)
			}
		}
	}
}

// TestRowsNameUnitsOnce: no value is in two rows.
func TestRowsNameUnitsOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range rows {
		if id := r.benchmark + " " + r.unit; seen[id] {
			t.Errorf("%s is there twice", id)
		} else {
			seen[id] = true
		}
	}
}

// TestBetween: the table between the marks is the run's, and nothing else changes.
func TestBetween(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "comparison.md")
	if err := os.WriteFile(file, []byte("above\n"+begin+"old\n"+end+"\nbelow\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time replaces the first
		if err := between(file, markdown(behind(parse([]byte(output))))); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "above\n" + begin + "\n" + `| what | beside | measured |
|---|---|---|
| session lock and release, 1 goroutine | go-pglock on a pool of 90: pg_try_advisory_lock, pg_advisory_unlock | 0.90 × the rate |
| lease acquired and released, 1 goroutine, the servers sync to disk | what cirello.io/pglock v1.16.1 sends without a heartbeat: nextval, an upsert, a delete | 0.80 × the rate |

` + end + "\nbelow\n"
	if string(text) != want {
		t.Errorf("wrote\n%s\nnot\n%s", text, want)
	}
	if err := os.WriteFile(file, []byte("no marks"), 0o600); err != nil {
		t.Fatal(err)
	}
	if between(file, "") == nil {
		t.Error("a page without marks is no error")
	}
}

// TestComparisonIsOfTheRun: measured values in docs/comparison.md are in docs/benchmarks.md too.
func TestComparisonIsOfTheRun(t *testing.T) {
	t.Parallel()
	comparison, err := os.ReadFile("../../docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	benchmarks, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(comparison), begin)
	text, _, _ = strings.Cut(text, end)
	ratios := regexp.MustCompile(`\d+\.\d+ × the rate`).FindAllString(text, -1)
	if len(ratios) == 0 {
		t.Fatal("no ratio is between the marks")
	}
	for _, ratio := range ratios {
		if !strings.Contains(string(benchmarks), "| "+ratio+" |") {
			t.Errorf("%s is not in benchmarks.md", ratio)
		}
	}
}
