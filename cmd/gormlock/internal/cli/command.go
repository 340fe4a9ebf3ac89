package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Command is one word of the command line.
type Command interface {
	Usage() Usage
	// Flags declares its flags. Their values are fields of the command.
	Flags(*flag.FlagSet)
	Run(ctx context.Context, p *Program, args []string) error
}

// FlagsOf is the flags that a command declares.
func FlagsOf(c Command) *flag.FlagSet {
	set := flag.NewFlagSet(c.Usage().Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	c.Flags(set)
	return set
}

// negative is a number that only looks like a flag.
var negative = regexp.MustCompile(`^-\d+$`)

// Parse reads flags wherever they stand among the arguments, up to "--".
func Parse(set *flag.FlagSet, args []string) (rest []string, err error) {
	for len(args) > 0 {
		a := args[0]
		switch {
		case a == "--":
			return append(rest, args[1:]...), nil
		case a == "-" || !strings.HasPrefix(a, "-") || negative.MatchString(a):
			rest, args = append(rest, a), args[1:]
			continue
		}
		n := min(takes(set, a), len(args))
		if err := checkValue(set, args[:n]); err != nil {
			return nil, err
		}
		if err := set.Parse(args[:n]); err != nil {
			return nil, flagError(set, err)
		}
		args = args[n:]
	}
	return rest, nil
}

// takes is how many arguments a flag uses: itself, and the next one if that is its value.
func takes(set *flag.FlagSet, arg string) int {
	f := set.Lookup(strings.TrimLeft(arg, "-"))
	if f == nil {
		return 1 // its value is after a =, or it is not our flag
	}
	if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
		return 1
	}
	return 2
}

// checkValue refuses the name of another flag as a flag's value, and a connection string as the value of any flag except --dsn. After a =, such a
// word is always a value.
func checkValue(set *flag.FlagSet, args []string) error {
	name, value, _ := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
	if len(args) == 2 {
		value = args[1]
		if next, _, _ := strings.Cut(strings.TrimLeft(value, "-"), "="); strings.HasPrefix(value, "-") && set.Lookup(next) != nil {
			return fmt.Errorf("--%s has no value: behind it stands %s", name, FlagName(value))
		}
	}
	if set.Lookup(name) != nil && name != "dsn" && connection.MatchString(value) {
		return fmt.Errorf("--%s: %w", name, errMisplaced)
	}
	return nil
}

// flagError rephrases an error of package flag.
func flagError(set *flag.FlagSet, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: ")
	if !unknown {
		return err
	}
	var known []string
	set.VisitAll(func(f *flag.Flag) { known = append(known, "--"+f.Name) })
	return fmt.Errorf("there is no flag %s%s", FlagName(name), DidYouMean(FlagName(name), known))
}

// FlagName is a flag without its value, which may be a secret.
func FlagName(arg string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return "--" + name
}
