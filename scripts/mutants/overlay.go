package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// switchName is the variable that switches a mutant on, by its number.
const switchName = "GORMLOCK_MUTANT"

// switches is what a package needs for its mutants.
const switches = `package %s

import (
	"os"
	"strconv"
)

var mutantNumber, _ = strconv.Atoi(os.Getenv("` + switchName + `"))

func switchedOn(number int) bool { return number == mutantNumber }

func mutated(number int, mutant, original func() bool) bool {
	if number == mutantNumber {
		return mutant()
	}
	return original()
}
`

// overlayOf writes the files with their mutants to dir, and the file that tells the compiler of them.
func overlayOf(all []mutant, dir string) (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	write := func(name, text string) error {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		replace[filepath.Join(root, filepath.FromSlash(name))] = file
		return os.WriteFile(file, []byte(text), 0o600)
	}
	byFile := map[string][]mutant{}
	for _, m := range all {
		byFile[m.file] = append(byFile[m.file], m)
	}
	for file, mutants := range byFile {
		source, err := os.ReadFile(filepath.FromSlash(file)) //nolint:gosec // it is a file of this repository
		if err != nil {
			return "", err
		}
		if err := write(file, mutate(string(source), mutants)); err != nil {
			return "", err
		}
	}
	for _, folder := range packages {
		if err := write(folder+"/mutated.go", fmt.Sprintf(switches, filepath.Base(folder))); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// insertion is text that is put into a file.
type insertion struct {
	at   int
	text string
	// of those at one place the ends of what began last come first, then the beginnings of what ends last.
	end  bool
	size int
	nth  int
}

// mutate puts mutants into a source. They may stand in each other.
func mutate(source string, mutants []mutant) string {
	var all []insertion
	for i, m := range mutants {
		size := m.to - m.from
		all = append(all,
			insertion{at: m.from, text: strings.Replace(m.before, "%d", strconv.Itoa(m.number), 1), size: size, nth: i},
			insertion{at: m.to, text: m.after, end: true, size: size, nth: i})
	}
	slices.SortFunc(all, func(a, b insertion) int {
		switch {
		case a.at != b.at:
			return a.at - b.at
		case a.end != b.end:
			return map[bool]int{true: -1, false: 1}[a.end]
		case a.end:
			return cmp.Or(a.size-b.size, b.nth-a.nth)
		}
		return cmp.Or(b.size-a.size, a.nth-b.nth)
	})
	var out strings.Builder
	from := 0
	for _, one := range all {
		_, _ = out.WriteString(source[from:one.at])
		_, _ = out.WriteString(one.text)
		from = one.at
	}
	_, _ = out.WriteString(source[from:])
	return out.String()
}
