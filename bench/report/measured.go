package main

import (
	"strconv"
	"strings"
)

// measured is the result of a run: by benchmark, without "Benchmark" and the number of processors, and then by unit.
type measured map[string]map[string]float64

// parse reads the output of go test -bench.
func parse(output []byte) measured {
	found := measured{}
	for line := range strings.SplitSeq(string(output), "\n") {
		words := strings.Fields(line)
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(words[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i]
		}
		values := map[string]float64{}
		for i := 2; i+1 < len(words); i += 2 {
			if value, err := strconv.ParseFloat(words[i], 64); err == nil {
				values[words[i+1]] = value
			}
		}
		found[name] = values
	}
	return found
}

// of returns one value, and whether it was measured.
func (m measured) of(benchmark, unit string) (float64, bool) {
	value, ok := m[benchmark][unit]
	return value, ok
}
