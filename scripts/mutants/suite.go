package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// suite is the tests of a folder that may catch a mutant.
type suite struct {
	folder  string
	tests   string // a regular expression; empty: all
	program string
	took    map[string]time.Duration
}

// suites are all of them, the fast ones first.
var suites = []*suite{
	{folder: "internal/memory"}, {folder: "internal/journal"}, {folder: "tests/versions"}, {folder: "tests/transactions"}, {folder: "tests/rollbacks"},
	{folder: "tests/rows"}, {folder: "tests/merges"}, {folder: "tests/losses"}, {folder: "tests/fences"}, {folder: "tests/claims"},
	{folder: "tests/belongs"}, {folder: "tests/clauses"}, {folder: "tests/hooks"}, {folder: "tests/events"}, {folder: "tests/locks"},
	{folder: "tests/costs"}, {folder: "tests/roots"}, {folder: "tests/once"}, {folder: "tests/invariants", tests: "TestMatrix.*|TestFamily.*"},
	{folder: "tests/mariadb"},
}

// reach is a line that a test program prints: a mutant, and the test that reaches it; empty: any may be it.
var reach = regexp.MustCompile(`(?m)^mutant (\d+) (\w*)$`)

// prepare builds the test program with all mutants in it, and runs it without one, to find out which tests reach some.
func (s *suite) prepare(ctx context.Context, some []mutant, overlay string) (map[int][]string, error) {
	s.program = filepath.Join(filepath.Dir(overlay), strings.ReplaceAll(s.folder, "/", "-")+".test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-ldflags=-s -w", "-overlay", overlay, "-o", s.program, ".") //nolint:gosec // of the list above
	build.Dir = filepath.FromSlash(s.folder)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", build, err, out)
	}
	var numbers []string
	for _, m := range some {
		numbers = append(numbers, strconv.Itoa(m.number))
	}
	s.took = map[string]time.Duration{}
	all := cmp.Or(s.tests, ".*")
	failed, printed, err := s.run(ctx, all, askedName+"="+strings.Join(numbers, " "))
	if err == nil && failed != "" {
		err = fmt.Errorf("without a mutant %s fails", failed)
	}
	reached := map[int][]string{}
	for _, line := range reach.FindAllStringSubmatch(printed, -1) {
		number, _ := strconv.Atoi(line[1])
		reached[number] = append(reached[number], cmp.Or(line[2], all))
	}
	return reached, err
}

// caughtBy names the test that notices a mutant; empty: none does. It must fail twice, because some fail once in a while.
func (s *suite) caughtBy(ctx context.Context, m mutant, tests []string) (failed string, err error) {
	on := switchName + "=" + strconv.Itoa(m.number)
	for _, round := range s.rounds(tests) {
		failed, _, err = s.run(ctx, strings.Join(round, "|"), on)
		if err == nil && failed != "" {
			failed, _, err = s.run(ctx, failed, on)
		}
		if err != nil || failed != "" {
			break
		}
	}
	return failed, err
}

// rounds are the tests that run together: first the fast ones.
func (s *suite) rounds(tests []string) [][]string {
	if len(tests) == 0 {
		return nil
	}
	const fast = 10 * time.Second
	slices.SortFunc(tests, func(a, b string) int { return cmp.Compare(s.took[a], s.took[b]) })
	var sum time.Duration
	for i, test := range tests {
		if sum += s.took[test]; sum > fast && i > 0 {
			return [][]string{tests[:i], tests[i:]}
		}
	}
	return [][]string{tests}
}

// skipped are tests that have other suites start a MariaDB, which takes long.
const skipped = "/mariadb"

// silence is how long a test program may print nothing, neither that a test begins nor that one ends.
const silence = 3 * time.Minute

var (
	failure = regexp.MustCompile(`^\s*--- FAIL: (\w+)`)
	success = regexp.MustCompile(`^--- PASS: (\w+) \((.+)\)`)
)

// run runs tests until one fails, and returns its name; empty: none does. If the program crashes or does not end it returns
// all of them. It also returns what the program printed to its standard error.
func (s *suite) run(ctx context.Context, tests, variable string) (failed, printed string, err error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(running, s.program, "-test.v", "-test.timeout=1h", "-test.skip="+skipped, "-test.run=^("+tests+")$") //nolint:gosec // it was built here
	cmd.Dir, cmd.Env, cmd.WaitDelay = filepath.FromSlash(s.folder), append(os.Environ(), variable), time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", "", err
	}
	if err := cmd.Start(); err != nil {
		return "", "", err
	}
	silent := time.AfterFunc(silence, stop)
	defer silent.Stop()
	lines := bufio.NewScanner(out)
	for lines.Buffer(nil, 1<<26); lines.Scan(); silent.Reset(silence) {
		if test := failure.FindStringSubmatch(lines.Text()); test != nil && failed == "" {
			failed = test[1]
			stop()
		}
		if test := success.FindStringSubmatch(lines.Text()); test != nil {
			s.took[test[1]], _ = time.ParseDuration(test[2])
		}
	}
	if err := cmd.Wait(); err != nil && failed == "" {
		failed = tests
	}
	return failed, stderr.String(), ctx.Err()
}
