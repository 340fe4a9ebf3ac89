package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTargets: the sentence is true of any run.
func TestTargets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ run, want string }{
		{"BenchmarkServer-2 3 1.0 version-num\n", ""},
		{"BenchmarkRoundTrips-2 3 1.0 open-1 1.0 open-1-timeout\n", "All 2 rows with a target meet it."},
		{
			"BenchmarkRoundTrips-2 3 1.0 open-1 3.0 open-1-timeout\nBenchmarkUnused-2 3 1.2 create\n",
			"1 of the 3 rows with a target meet it; the furthest from it is “1 lock in an open transaction, with a timeout, beside without the lock”: 3 round trips more, target ≤ 1.",
		},
		{
			"BenchmarkHotRow-2 3 0.5 ratio\nBenchmarkLocked/scope/goroutines=1-2 3 0.8 ratio\n",
			"0 of the 2 rows with a target meet it; the furthest from it is “LockRow, a change and an update of one hot row, 8 goroutines, beside SELECT … FOR UPDATE and the update in GORM”: 0.50 × the rate, target ≥ 1.",
		},
	} {
		if got := targets(parse([]byte(c.run))); got != c.want {
			t.Errorf("got %q\nnot %q", got, c.want)
		}
	}
}

// TestCosts: a rate becomes a time, and so do its quartiles and its target.
func TestCosts(t *testing.T) {
	t.Parallel()
	all := costsOf(parse([]byte("BenchmarkLocked/Transaction/goroutines=8/network-2 3 0.8 ratio 0.5 ratio-q1 1.25 ratio-q3 21 ratio-rounds\n")))
	if len(all) != 1 {
		t.Fatalf("%d bars", len(all))
	}
	if c := all[0]; c.time != 1.25 || c.first != 0.8 || c.third != 2 || c.bound != 0.8 || c.met {
		t.Errorf("%+v", c)
	}
}

// TestCosts_haveRows: everything that the first plot and the sentences name is a row.
func TestCosts_haveRows(t *testing.T) {
	t.Parallel()
	for _, c := range costs {
		if rowOf(c.benchmark, c.unit).what == "" {
			t.Errorf("%s %s", c.benchmark, c.unit)
		}
	}
	full := measured{}
	for _, r := range rows {
		if full[r.benchmark] == nil {
			full[r.benchmark] = map[string]float64{}
		}
		full[r.benchmark][r.unit] = 1
	}
	if got := summary(full); len(got) != 5 {
		t.Errorf("%d sentences, not five: %q", len(got), got)
	}
}

// TestGrowth: the tables of docs/scale.md are the run's. A run without them leaves the page alone.
func TestGrowth(t *testing.T) {
	t.Parallel()
	run := output
	if growth(parse([]byte(run))) != "" {
		t.Error("tables of half a run")
	}
	for _, name := range []string{"update", "versioned", "xactlock", "hotkey", "hotrow"} {
		run += "BenchmarkScale/" + name + "-2 3 2749 clients=1/s 3.46 clients=8-x 12.7 clients=64-x\n"
	}
	text := growth(parse([]byte(run)))
	for _, want := range []string{
		"| update | 2,700 | 3.5 × | 13 × |\n",
		"| session locks taken and given back by 8 goroutines, by those that the manager holds | 1: 37,000 | 100: 0.9 ×, 1,000: 0.6 ×, 5,000: 0.2 ×, 10,000: 0.1 × |\n",
		"| claims of 10 jobs by one connection, by the jobs that are ready | 10,000: 5,000 | 1,000,000: 0.9 ×, 10,000,000: 0.8 × |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestRun_ofAKeptRun writes all pages of a kept run, and runs nothing.
func TestRun_ofAKeptRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept := filepath.Join(dir, "run.txt")
	for file, text := range map[string]string{kept: output, filepath.Join(dir, "comparison.md"): begin + end, filepath.Join(dir, "scale.md"): begin + "as it was\n" + end} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(kept, filepath.Join(dir, "none", "kept.txt"), dir, ""); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"benchmarks.md": "# Benchmarks", "comparison.md": "| what | beside | measured |", "scale.md": "as it was",
		"images/bench-cost.svg": "<svg", "images/bench-session.svg": "<svg", "images/bench-growth.svg": "<svg",
	} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, no %q in\n%s", file, err, want, text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a run was kept where nothing ran")
	}
}

// TestParse_theLastWins: a later result replaces an earlier one.
func TestParse_theLastWins(t *testing.T) {
	t.Parallel()
	if v, _ := parse([]byte(output+"BenchmarkHotRow-2 1 0.5 ratio\nBenchmarkHotRow-2 1 0.7 ratio\n")).of("HotRow", "ratio"); v != 0.7 {
		t.Errorf("%v", v)
	}
}
