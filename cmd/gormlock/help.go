package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

// overview is the help without a command.
func overview(s terminal.Style) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s shows who holds which lock in a PostgreSQL database, and who waits for whom.\n\n%s\n",
		s.Bold("gormlock"), s.Bold("Commands"))
	for _, c := range commands() {
		u := c.Usage()
		fmt.Fprintf(&b, "  %-24s %s\n", strings.TrimSpace(u.Name+" "+u.Args), u.Summary)
	}
	fmt.Fprintf(&b, "\n%s\n  %s\n", s.Bold("Server"), strings.ReplaceAll(cli.Environment, "\n", "\n  "))
	fmt.Fprintf(&b, "\n%s\n  0  %s\n  1  something was found, or not confirmed\n  2  %s\n", s.Bold("Exit codes"), cli.UsualExits[0], cli.UsualExits[2])
	fmt.Fprintf(&b, "\ngormlock COMMAND --help describes one command. NO_COLOR=1 switches colours off.\n")
	return b.String()
}

// help is the command that prints the help of another command.
type help struct{}

func (*help) Usage() cli.Usage {
	return cli.Usage{Name: "help", Args: "[COMMAND]", AtMost: 1, Summary: "this text, or all about one command"}
}

func (*help) Flags(*flag.FlagSet) {}

func (*help) Run(_ context.Context, p *cli.Program, args []string) error {
	if len(args) == 0 {
		p.Printf("%s", overview(p.Style))
		return nil
	}
	c, err := find(args[0])
	if err != nil {
		return err
	}
	p.Printf("%s", cli.HelpOf(c, p.Style))
	return nil
}
