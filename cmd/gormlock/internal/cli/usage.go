package cli

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

// Usage describes a command.
type Usage struct {
	Name    string
	Args    string // for example "PID"
	AtLeast int
	AtMost  int  // -1: any number
	Server  bool // its arguments are connection strings
	Summary string
	Details string
	Exits   [3]string // the meanings of its exit codes, "" for the usual ones
}

// Check returns an error if the number of arguments is wrong, or a connection string is among them.
func (u Usage) Check(args []string) error {
	switch {
	case !u.Server && slices.ContainsFunc(args, connection.MatchString):
		return errMisplaced
	case len(args) < u.AtLeast:
		return fmt.Errorf("%s is missing", u.Args)
	case u.AtMost >= 0 && len(args) > u.AtMost:
		if u.AtMost == 0 {
			return fmt.Errorf("unexpected argument %q, it takes flags only", args[0])
		}
		return fmt.Errorf("unexpected argument %q after %s", args[u.AtMost], u.Args)
	}
	return nil
}

// UsualExits are the meanings of exit codes for commands that do not say otherwise.
var UsualExits = [3]string{"all is well", "never", "an error, one line on standard error"}

// Environment is in the help of each command that connects.
const Environment = `The server is found by --dsn, else DATABASE_URL, else the variables of libpq: PGHOST,
PGPORT, PGUSER, PGPASSWORD, PGDATABASE, PGSERVICE, PGSSLMODE and so on. Both forms of a
connection string will do: postgres://user@host/database, or host=… user=… dbname=….
A password is better in PGPASSWORD or ~/.pgpass: everybody on the machine can read arguments.`

// HelpOf is the whole help of a command.
func HelpOf(c Command, s terminal.Style) string {
	u := c.Usage()
	var b strings.Builder
	set := FlagsOf(c)
	line := "gormlock " + u.Name
	if u.Args != "" {
		line += " " + u.Args
	}
	flags := flagTexts(set)
	if flags != "" {
		line += " [flags]"
	}
	fmt.Fprintf(&b, "%s: %s\n\n%s\n  %s\n", s.Bold("gormlock "+u.Name), u.Summary, s.Bold("Usage"), line)
	if u.Details != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(u.Details))
	}
	if flags != "" {
		fmt.Fprintf(&b, "\n%s\n%s", s.Bold("Flags"), flags)
	}
	if set.Lookup("dsn") != nil {
		fmt.Fprintf(&b, "\n%s\n  %s\n", s.Bold("Server"), strings.ReplaceAll(Environment, "\n", "\n  "))
	}
	fmt.Fprintf(&b, "\n%s\n", s.Bold("Exit codes"))
	for code, text := range u.Exits {
		if text == "" {
			text = UsualExits[code]
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
