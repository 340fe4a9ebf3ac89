package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/doctor"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/jobs"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/key"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/look"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

// commands are made anew for each run, in the order of the help.
func commands() []cli.Command {
	return []cli.Command{
		&look.List{}, &look.Watch{}, &look.Why{}, &jobs.Command{}, &key.Command{}, &doctor.Command{}, look.Cancel(), look.Terminate(),
		&completion{}, &version{}, &help{},
	}
}

func find(name string) (cli.Command, error) {
	var names []string
	for _, c := range commands() {
		if c.Usage().Name == name {
			return c, nil
		}
		names = append(names, c.Usage().Name)
	}
	return nil, fmt.Errorf("there is no command %q%s: gormlock help lists them", name, cli.DidYouMean(name, names))
}

// dispatch runs the command that args name.
func dispatch(ctx context.Context, p *cli.Program, args []string) error {
	if len(args) == 0 {
		_, _ = fmt.Fprint(p.Stderr, overview(terminal.StyleOf(p.Stderr)))
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
		return fmt.Errorf("the command comes first, before %s: gormlock help lists them", cli.FlagName(name))
	}
	c, err := find(name)
	if err != nil {
		return err
	}
	set := cli.FlagsOf(c)
	rest, err := cli.Parse(set, args[1:])
	if err == flag.ErrHelp { //nolint:errorlint // flag returns it bare
		p.Printf("%s", cli.HelpOf(c, p.Style))
		return cli.ErrHelp
	}
	u := c.Usage()
	if err == nil {
		err = u.Check(rest)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: gormlock %s --help says more", u.Name, err, u.Name)
	}
	return c.Run(ctx, p, rest)
}
