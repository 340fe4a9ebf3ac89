package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

const output = `goos: linux
BenchmarkClaim10/ready=10000-2         	       3	 140000000 ns/op	       100.0 bare-µs	       105.0 claim-µs	         1.050 x-bare
BenchmarkClaim10/ready=1000000-2       	       3	 140000000 ns/op	       100.0 bare-µs	       120.0 claim-µs	         1.200 x-bare	         0.9000 x-small
BenchmarkUnused-2                      	       3	         1.01 ratio	        -1.000 more-allocs
BenchmarkSessionLock/goroutines=1-2    	1000000000	     10000 ours/s	     11000 peer/s	         0.9000 ratio
BenchmarkSessionLock/goroutines=1000-2 	1000000000	    110000 ours/s	     10000 peer/s	        11.00 ratio
PASS
`

func TestReport(t *testing.T) {
	t.Parallel()
	found := parse([]byte(output))
	text := page(found)
	for _, want := range []string{
		"| Claim 10 of 10,000 | bare SQL | 1.05 × the time | ≤ 1.1 | yes |",
		"| Claim 10 of 1,000,000 | bare SQL | 1.20 × the time | ≤ 1.1 | no |",
		"| Claim 10 of 1,000,000 | Claim 10 of 10,000 | 0.90 × the time | ≤ 1.5 | yes |",
		"| the same | without the plugin | 1 allocation fewer | ≤ 0 | yes |",
		"| session lock and release, 1,000 goroutines, 1 connection | pg_try_advisory_lock, pg_advisory_unlock on a pool of 90 | 11.0 × the rate | ≥ 10 | yes |",
		"images/bench-session.svg", "images/bench-claim.svg",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "River's fetch") {
		t.Error("a row that was not measured is in the table")
	}
	for _, svg := range []string{sessionPlot(found), claimPlot(found)} {
		decoder := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := decoder.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, svg)
			}
		}
	}
}

// TestRowsNameUnitsOnce: no value stands in two rows.
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
