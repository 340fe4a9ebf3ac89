// Command report runs the benchmarks, prints one table of what they measured beside its targets, and writes it to
// docs/benchmarks.md with plots, and where gormlock is behind to docs/comparison.md.
//
//	make bench
//	go -C bench run ./report -in run.txt   # of a run that was kept
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

func main() {
	in := flag.String("in", "", "read the output of a run from this `file` instead of running the benchmarks")
	docs := flag.String("docs", "../docs", "the `directory` to write benchmarks.md and images/ to, and to change comparison.md in")
	pattern := flag.String("bench", ".", "which benchmarks to run; with less than all nothing is written")
	flag.Parse()
	if err := run(*in, *docs, *pattern); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(in, docs, pattern string) error {
	var output []byte
	var err error
	if in != "" {
		output, err = os.ReadFile(in)
	} else {
		output, err = benchmarks(pattern)
	}
	if err != nil {
		return err
	}
	found := parse(output)
	if len(found) == 0 {
		return fmt.Errorf("the run measured nothing:\n%s", output)
	}
	fmt.Println()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, cells := range lines(found) {
		if _, err := fmt.Fprintln(table, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil || pattern != "." {
		return err
	}
	return write(docs, found)
}

// benchmarks runs them, shows what they say as they say it, and returns it.
func benchmarks(pattern string) ([]byte, error) {
	var kept bytes.Buffer
	test := exec.CommandContext(context.Background(), "go", "test", "-run", "^$", "-bench", pattern, "-benchtime", "3x", "-timeout", "60m", ".")
	test.Stdout, test.Stderr = io.MultiWriter(os.Stdout, &kept), os.Stderr
	if err := test.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(test.Args, " "), err)
	}
	return kept.Bytes(), nil
}

// write puts the table and the plots into docs.
func write(docs string, found measured) error {
	for name, plot := range map[string]string{
		"bench-session.svg": sessionPlot(found),
		"bench-claim.svg":   claimPlot(found),
	} {
		if plot == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Join(docs, "images"), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(docs, "images", name), []byte(plot), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(docs, "benchmarks.md"), []byte(page(found)), 0o644); err != nil {
		return err
	}
	return compare(filepath.Join(docs, "comparison.md"), found)
}

const begin, end = "<!-- make bench writes from here -->\n", "<!-- to here -->"

// compare puts into the page, between its two marks, where gormlock is behind.
func compare(file string, found measured) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s has no lines %q and %q", file, begin, end)
	}
	return os.WriteFile(file, []byte(before+begin+"\n"+markdown(behind(found))+"\n"+end+after), 0o644)
}
