package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
)

// usage is what a command says about itself.
type usage struct {
	name    string
	args    string // as in "PID"
	atLeast int
	atMost  int // -1: any number
	summary string
	details string
	exits   [3]string // what its exit codes say, "" where the usual is right
}

func (u usage) count(args []string) error {
	switch {
	case len(args) < u.atLeast:
		return fmt.Errorf("%s is missing", u.args)
	case u.atMost >= 0 && len(args) > u.atMost:
		if u.atMost == 0 {
			return fmt.Errorf("%q is too much, it takes flags only", args[0])
		}
		return fmt.Errorf("%q is too much after %s", args[u.atMost], u.args)
	}
	return nil
}

var usualExits = [3]string{"all is well", "never", "an error, one line on standard error"}

// environment is in the help of each command that connects.
const environment = `The server is found by --dsn, else DATABASE_URL, else the variables of libpq: PGHOST,
PGPORT, PGUSER, PGPASSWORD, PGDATABASE, PGSERVICE, PGSSLMODE and so on. Both forms of a
connection string will do: postgres://user@host/database, or host=… user=… dbname=….
A password is better in PGPASSWORD or ~/.pgpass: everybody on the machine can read arguments.`

// helpOf is the whole help of a command.
func helpOf(c command, s style) string {
	u := c.usage()
	var b strings.Builder
	set := flagsOf(c)
	line := "gormlock " + u.name
	if u.args != "" {
		line += " " + u.args
	}
	flags := flagTexts(set)
	if flags != "" {
		line += " [flags]"
	}
	fmt.Fprintf(&b, "%s: %s\n\n%s\n  %s\n", s.bold("gormlock "+u.name), u.summary, s.bold("Usage"), line)
	if u.details != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(u.details))
	}
	if flags != "" {
		fmt.Fprintf(&b, "\n%s\n%s", s.bold("Flags"), flags)
	}
	if set.Lookup("dsn") != nil {
		fmt.Fprintf(&b, "\n%s\n  %s\n", s.bold("Server"), strings.ReplaceAll(environment, "\n", "\n  "))
	}
	fmt.Fprintf(&b, "\n%s\n", s.bold("Exit codes"))
	for code, text := range u.exits {
		if text == "" {
			text = usualExits[code]
		}
		if text != "never" {
			fmt.Fprintf(&b, "  %d  %s\n", code, text)
		}
	}
	return b.String()
}

// flagTexts lists the flags of a set, two lines each.
func flagTexts(set *flag.FlagSet) string {
	var b strings.Builder
	set.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		name := "--" + f.Name
		if value != "" {
			name += " " + value
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
			text += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(&b, "  %s\n        %s\n", name, strings.ReplaceAll(text, "\n", "\n        "))
	})
	return b.String()
}

// overview is the help without a command.
func overview(s style) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s shows who holds which lock in a PostgreSQL database, and who waits for whom.\n\n%s\n",
		s.bold("gormlock"), s.bold("Commands"))
	for _, c := range commands() {
		u := c.usage()
		fmt.Fprintf(&b, "  %-24s %s\n", strings.TrimSpace(u.name+" "+u.args), u.summary)
	}
	fmt.Fprintf(&b, "\n%s\n  %s\n", s.bold("Server"), strings.ReplaceAll(environment, "\n", "\n  "))
	fmt.Fprintf(&b, "\n%s\n  0  %s\n  1  something was found, or not confirmed\n  2  %s\n", s.bold("Exit codes"), usualExits[0], usualExits[2])
	fmt.Fprintf(&b, "\ngormlock COMMAND --help says all about one. Colours go with NO_COLOR=1.\n")
	return b.String()
}

// help is the command that prints the help of another.
type help struct{}

func (*help) usage() usage {
	return usage{name: "help", args: "[COMMAND]", atMost: 1, summary: "this text, or all about one command"}
}

func (*help) flags(*flag.FlagSet) {}

func (*help) run(_ context.Context, p *program, args []string) error {
	if len(args) == 0 {
		p.printf("%s", overview(p.style))
		return nil
	}
	c, err := find(args[0])
	if err != nil {
		return err
	}
	p.printf("%s", helpOf(c, p.style))
	return nil
}
