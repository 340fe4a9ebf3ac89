// Command mutants breaks the heart of versioned writes in one place at a time, and runs the tests that should notice. It is
// run at the root, with a server to test on:
//
//	scripts/with-postgres go run ./scripts/mutants -n 60        sixty of them, spread over all
//	scripts/with-postgres go run ./scripts/mutants              all: hours
//	go run ./scripts/mutants -list                              what they are
//
// All mutants are built into one set of test programs, by an overlay: no file of the tree is touched. Each run of them
// switches one on. It prints each mutant that survives, and fails then, unless equal.txt says why it changes nothing.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// packages are what is mutated.
var packages = []string{"internal/guard", "internal/memory", "internal/journal"}

// suites are what may catch a mutant, the fast ones first: folders of the module of the tests, and tests.
var suites = [][2]string{
	{"versions", "."},
	{"transactions", "."},
	{"fences", "."},
	{"rows", "."},
	{"hooks", "."},
	{"invariants", "TestMatrix|TestFamily"},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var c command
	flag.IntVar(&c.n, "n", 0, "how many, spread over all; 0: all")
	flag.IntVar(&c.first, "from", 0, "leave out so many of them")
	flag.DurationVar(&c.within, "within", 0, "begin no other after this time; 0: no limit")
	flag.StringVar(&c.only, "only", "", "those whose place has this in it")
	flag.BoolVar(&c.list, "list", false, "list them and stop")
	flag.Parse()
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// command is what was asked for.
type command struct {
	n, first int
	within   time.Duration
	only     string
	list     bool
}

func (c *command) run(ctx context.Context) error {
	all, err := mutantsOf(packages)
	if err != nil {
		return err
	}
	chosen := c.choose(all)
	fmt.Printf("%d of %d mutants\n", len(chosen), len(all))
	if c.list {
		for _, m := range chosen {
			fmt.Println(m)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := build(ctx, all, dir); err != nil {
		return err
	}
	if by, err := caughtBy(ctx, dir, 0); err != nil || by != "" {
		return fmt.Errorf("without a mutant %s fails: %w", by, err)
	}
	return c.judge(ctx, dir, chosen)
}

// choose picks the mutants that were asked for.
func (c *command) choose(all []mutant) []mutant {
	var fit, chosen []mutant
	for _, m := range all {
		if strings.Contains(m.String(), c.only) {
			fit = append(fit, m)
		}
	}
	for i, m := range fit {
		if c.n == 0 || i == 0 || i*c.n/len(fit) != (i-1)*c.n/len(fit) {
			chosen = append(chosen, m)
		}
	}
	return chosen[min(c.first, len(chosen)):]
}

// judge runs the tests with each mutant.
func (c *command) judge(ctx context.Context, dir string, chosen []mutant) error {
	began, survivors, judged := time.Now(), 0, 0
	for _, m := range chosen {
		if c.within > 0 && time.Since(began) > c.within {
			fmt.Printf("%d are left: -from %d\n", len(chosen)-judged, c.first+judged)
			break
		}
		judged++
		start := time.Now()
		by, err := caughtBy(ctx, dir, m.number)
		reason, equal := equalMutants()[m.String()]
		switch {
		case err != nil:
			return fmt.Errorf("%v: %w", m, err)
		case by != "":
			fmt.Printf("caught    %v: %s, %v\n", m, by, time.Since(start).Round(time.Second))
		case equal:
			fmt.Printf("equal     %v: %s\n", m, reason)
		default:
			survivors++
			fmt.Printf("SURVIVES  %v\n", m)
		}
	}
	if survivors > 0 {
		return fmt.Errorf("%d of %d survive", survivors, judged)
	}
	return nil
}

//go:embed equal.txt
var equalText string

// equalMutants are those that change nothing, and why: a line each, the mutant and the reason between " => ". The number
// of the line is left out, for lines move.
func equalMutants() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(equalText) {
		if name, reason, ok := strings.Cut(strings.TrimSpace(line), " => "); ok {
			all[name] = reason
		}
	}
	return all
}

// build makes the test programs with all mutants in them, none switched on.
func build(ctx context.Context, all []mutant, dir string) error {
	overlay, err := overlayOf(all, dir)
	if err != nil {
		return err
	}
	for _, suite := range suites {
		cmd := exec.CommandContext(ctx, "go", "-C", "tests", "test", "-c", "-overlay", overlay, "-o", program(dir, suite[0]), "./"+suite[0]) //nolint:gosec // of the list above
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", cmd, err, out)
		}
	}
	return nil
}

func program(dir, suite string) string { return filepath.Join(dir, suite+".test") }

// caughtBy names what notices the mutant; empty: nothing does.
func caughtBy(ctx context.Context, dir string, number int) (string, error) {
	for _, suite := range suites {
		cmd := exec.CommandContext(ctx, program(dir, suite[0]), "-test.run="+suite[1], "-test.failfast", "-test.timeout=3m") //nolint:gosec // it was built here
		cmd.Dir = filepath.Join("tests", suite[0])
		cmd.Env = append(os.Environ(), switchName+"="+strconv.Itoa(number))
		out, err := cmd.CombinedOutput()
		var failed *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case errors.As(err, &failed):
			return firstFailure(string(out), suite[0]), nil
		case err != nil:
			return "", err
		}
	}
	return "", nil
}

// firstFailure is the name of the first test that failed.
func firstFailure(out, suite string) string {
	for line := range strings.Lines(out) {
		if _, name, ok := strings.Cut(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return suite + " " + name
		}
	}
	return suite
}
