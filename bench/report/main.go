// Command report runs the benchmarks, prints one table of the results with their targets, and writes it to docs/benchmarks.md with plots. It writes
// the rows in which gormlock is slower to docs/comparison.md, and how speed grows to docs/scale.md.
//
//	make bench                                                    # all, and keep what they print in .bin/bench.txt
//	make bench BENCHFLAGS='-bench Lease'                          # some: nothing is written
//	make bench BENCHFLAGS='-in ../.bin/bench.txt -bench Lease'    # these again, in place of those of the kept run
//	make bench BENCHFLAGS='-in ../.bin/bench.txt'                 # none: write the pages of the kept run
package main

import (
	"bytes"
	"cmp"
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
	in := flag.String("in", "", "read the output of a run from this `file`, and run only what -bench names")
	keep := flag.String("keep", "../.bin/bench.txt", "the `file` to keep the output in; a run of some benchmarks without -in is not kept")
	docs := flag.String("docs", "../docs", "the `directory` to write benchmarks.md and images/ to, and to change comparison.md and scale.md in")
	pattern := flag.String("bench", "", "which benchmarks to run; without -in and with less than all nothing is written")
	flag.Parse()
	if err := run(*in, *keep, *docs, *pattern); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(in, keep, docs, pattern string) error {
	var output []byte
	var err error
	if in != "" {
		if output, err = os.ReadFile(in); err != nil {
			return err
		}
	}
	part := in == "" && pattern != ""
	if part {
		keep = os.DevNull
	}
	if in == "" || pattern != "" {
		if output, err = benchmarks(output, cmp.Or(pattern, "."), keep); err != nil {
			return err
		}
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
	if err := table.Flush(); err != nil || part {
		return err
	}
	return write(docs, found)
}

// benchmarks runs them, shows their output as it comes, and returns it after the earlier output in before. It keeps all output in a file as it
// goes, so that a run of half an hour that fails at its end is not lost.
func benchmarks(before []byte, pattern, keep string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(keep), 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(keep)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var kept bytes.Buffer
	both := io.MultiWriter(&kept, file)
	if _, err := both.Write(before); err != nil {
		return nil, err
	}
	test := exec.CommandContext(context.Background(), "go", "test", "-run", "^$", "-bench", pattern, "-benchtime", "3x", "-timeout", "90m", ".")
	test.Stdout, test.Stderr = io.MultiWriter(os.Stdout, both), os.Stderr
	if err := test.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w; what was measured is kept in %s: see -in", strings.Join(test.Args, " "), err, keep)
	}
	return kept.Bytes(), file.Close()
}

// write puts the table and the plots into docs.
func write(docs string, found measured) error {
	for _, p := range plots {
		picture := p.draw(found)
		if picture == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Join(docs, "images"), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(docs, "images", p.file), []byte(picture), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(docs, "benchmarks.md"), []byte(page(found)), 0o644); err != nil {
		return err
	}
	if err := between(filepath.Join(docs, "comparison.md"), markdown(behind(found))); err != nil {
		return err
	}
	if tables := growth(found); tables != "" {
		return between(filepath.Join(docs, "scale.md"), tables)
	}
	return nil
}

const begin, end = "<!-- make bench writes from here -->\n", "<!-- to here -->"

// between replaces the text between the two marks of a page.
func between(file, written string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s has no lines %q and %q", file, begin, end)
	}
	return os.WriteFile(file, []byte(before+begin+"\n"+written+"\n"+end+after), 0o644)
}
