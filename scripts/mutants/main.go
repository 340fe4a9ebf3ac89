// Command mutants breaks the heart of versioned writes in one place at a time, and runs the tests that should notice. It is
// run at the root:
//
//	scripts/with-postgres go run ./scripts/mutants              sixty mutants, ten of each package
//	scripts/with-postgres go run ./scripts/mutants -from 30     sixty others
//	scripts/with-postgres go run ./scripts/mutants -n 0         all: hours
//	go run ./scripts/mutants -list -only internal/memory        the names of some
//
// All mutants are built into one set of test programs, by an overlay: no file of the tree is touched. Each run of a program
// switches one on. The first run has none on, and finds out which tests reach which mutants; only these run with them. The
// programs stay in .bin/mutants.
//
// It prints what became of each mutant. It fails if one survives, unless equal.txt says why that changes nothing.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/gormlock/gormlock/internal/pgserver"
)

// packages are what is mutated.
var packages = []string{"internal/guard", "internal/form", "internal/match", "internal/asked", "internal/reading", "internal/children", "internal/whereabouts", "internal/memory", "internal/journal"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	n := flag.Int("n", 60, "how many, as many of each package; 0: all")
	from := flag.Int("from", 0, "begin the spread with this one")
	only := flag.String("only", "", "those whose name has this in it")
	list := flag.Bool("list", false, "list them and stop")
	flag.Parse()
	if err := run(ctx, *n, *from, *only, *list); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, n, from int, only string, list bool) error {
	sources, err := sourcesOf(packages)
	if err != nil {
		return err
	}
	var all []mutant
	for _, s := range sources {
		all = append(all, s.mutants...)
	}
	equal, err := equalMutants(all)
	if err != nil {
		return err
	}
	chosen := spread(all, n, from, only)
	fmt.Printf("%d of %d mutants\n", len(chosen), len(all))
	if list {
		for _, m := range chosen {
			fmt.Println(m)
		}
		return nil
	}
	stop, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer stop()
	dir, err := filepath.Abs(filepath.Join(".bin", "mutants"))
	if err != nil {
		return err
	}
	overlay, err := overlayOf(sources, dir)
	if err != nil {
		return err
	}
	return judge(ctx, chosen, equal, overlay)
}

// startServer starts a server for all test programs, unless the environment names one.
func startServer(ctx context.Context) (stop func(), err error) {
	if os.Getenv("GORMLOCK_TEST_DSN") != "" {
		return func() {}, nil
	}
	server, err := pgserver.Start(ctx)
	if err != nil {
		return nil, err
	}
	return func() { _ = server.Stop() }, os.Setenv("GORMLOCK_TEST_DSN", server.DSN("postgres"))
}

// spread picks n mutants at equal distances, as many of each package, of those whose name has only in it.
func spread(all []mutant, n, from int, only string) (chosen []mutant) {
	for _, folder := range packages {
		var fit []mutant
		for _, m := range all {
			if strings.HasPrefix(m.file, folder+"/") && strings.Contains(m.String(), only) {
				fit = append(fit, m)
			}
		}
		part := len(fit)
		if n > 0 {
			part = min(part, (n+len(packages)-1)/len(packages))
		}
		for i := range part {
			chosen = append(chosen, fit[(from+i*len(fit)/part)%len(fit)])
		}
	}
	return chosen
}

// judge runs one suite after the other, with each mutant that none before it caught.
func judge(ctx context.Context, left []mutant, equal map[string]string, overlay string) error {
	judged, wrong, reachedBy := len(left), 0, map[int]int{}
	for _, s := range suites {
		reached, err := s.prepare(ctx, left, overlay)
		if err != nil {
			return fmt.Errorf("%s: %w", s.folder, err)
		}
		fmt.Printf("%s reaches %d of %d\n", s.folder, len(reached), len(left))
		var missed []mutant
		for _, m := range left {
			reachedBy[m.number] += len(reached[m.number])
			by, err := s.caughtBy(ctx, m, reached[m.number])
			switch {
			case err != nil:
				return fmt.Errorf("%s, %v: %w", s.folder, m, err)
			case by == "":
				missed = append(missed, m)
			case equal[m.String()] == "":
				fmt.Printf("caught    %v: %s %s\n", m, s.folder, by)
			default:
				wrong++
				fmt.Printf("NOT EQUAL %v: %s %s\n", m, s.folder, by)
			}
		}
		if left = missed; len(left) == 0 {
			break
		}
	}
	for _, m := range left {
		if reason := equal[m.String()]; reason != "" {
			fmt.Printf("equal     %v: %s\n", m, reason)
			continue
		}
		wrong++
		fmt.Printf("SURVIVES  %v: line %d, %d tests reach it\n", m, m.line, reachedBy[m.number])
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d are neither caught nor equal", wrong, judged)
	}
	return nil
}

//go:embed equal.txt
var equalText string

// equalMutants are those that change nothing, with the reason: each line of equal.txt is "name => reason". It is an error if
// there is no such mutant any more.
func equalMutants(all []mutant) (map[string]string, error) {
	names, equal := map[string]bool{}, map[string]string{}
	for _, m := range all {
		names[m.String()] = true
	}
	for line := range strings.Lines(equalText) {
		name, reason, _ := strings.Cut(strings.TrimSpace(line), " => ")
		if !names[name] || reason == "" {
			return nil, fmt.Errorf("equal.txt: there is no such mutant, or no reason: %s", line)
		}
		equal[name] = reason
	}
	return equal, nil
}
