package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// command is one word of the command line.
type command interface {
	usage() usage
	// flags declares its flags. Their values are fields of the command.
	flags(*flag.FlagSet)
	run(ctx context.Context, p *program, args []string) error
}

// commands are made anew for each run, in the order of the help.
func commands() []command {
	return []command{
		&list{}, &watch{}, &why{}, &key{}, &doctor{}, &end{verb: cancelling}, &end{verb: terminating},
		&completion{}, &version{}, &help{},
	}
}

func find(name string) (command, error) {
	var names []string
	for _, c := range commands() {
		if c.usage().name == name {
			return c, nil
		}
		names = append(names, c.usage().name)
	}
	return nil, fmt.Errorf("there is no command %q%s: gormlock help lists them", name, didYouMean(name, names))
}

// dispatch runs the command that args name.
func (p *program) dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		_, _ = fmt.Fprint(p.stderr, overview(styleOf(p.stderr)))
		return fmt.Errorf("no command is given")
	}
	name := args[0]
	switch name {
	case "-h", "-help", "--help":
		name = "help"
	case "-version", "--version", "-V":
		name = "version"
	}
	if strings.HasPrefix(name, "-") {
		return fmt.Errorf("the command comes first, before %s: gormlock help lists them", flagName(name))
	}
	c, err := find(name)
	if err != nil {
		return err
	}
	set := flagsOf(c)
	rest, err := parse(set, args[1:])
	if err == flag.ErrHelp { //nolint:errorlint // flag returns it bare
		p.printf("%s", helpOf(c, p.style))
		return errHelp
	}
	u := c.usage()
	if err == nil {
		err = u.count(rest)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: gormlock %s --help says more", u.name, err, u.name)
	}
	return c.run(ctx, p, rest)
}

func flagsOf(c command) *flag.FlagSet {
	set := flag.NewFlagSet(c.usage().name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	c.flags(set)
	return set
}

// negative is a number that only looks like a flag.
var negative = regexp.MustCompile(`^-\d+$`)

// parse reads flags wherever they stand among the arguments, up to "--".
func parse(set *flag.FlagSet, args []string) (rest []string, err error) {
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
		if err := set.Parse(args[:n]); err != nil {
			return nil, flagError(set, err)
		}
		args = args[n:]
	}
	return rest, nil
}

// takes is how many arguments a flag is: itself, and its value where that stands behind it.
func takes(set *flag.FlagSet, arg string) int {
	f := set.Lookup(strings.TrimLeft(arg, "-"))
	if f == nil {
		return 1 // it has its value behind a =, or is none of ours
	}
	if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
		return 1
	}
	return 2
}

// flagError says it in the words of this program.
func flagError(set *flag.FlagSet, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: ")
	if !unknown {
		return err
	}
	var known []string
	set.VisitAll(func(f *flag.Flag) { known = append(known, "--"+f.Name) })
	return fmt.Errorf("there is no flag %s%s", flagName(name), didYouMean(flagName(name), known))
}

// flagName is a flag without its value, which may be a secret.
func flagName(arg string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return "--" + name
}
