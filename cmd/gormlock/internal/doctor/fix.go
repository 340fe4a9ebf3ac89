package doctor

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

// printFix prints the findings as a script of SQL: the statements that --apply runs, and as comments what a person must decide.
func (x *examination) printFix(p *cli.Program) {
	s := x.server
	p.Printf("-- gormlock doctor: %s, database %s, role %s\n", terminal.OneLine(s.name()), terminal.OneLine(s.Database), terminal.OneLine(s.Role))
	found := 0
	for _, f := range x.findings {
		if !f.counts() {
			continue
		}
		found++
		p.Printf("\n-- %s: %s\n", f.Check, terminal.OneLine(f.Says))
		if len(f.Fix) > 0 && printable(f.Fix) {
			if f.note != "" {
				p.Printf("-- %s\n", f.note)
			}
			p.Printf("%s\n", strings.Join(f.Fix, "\n"))
			continue
		}
		if f.Cure == "" {
			continue
		}
		p.Printf("-- to decide:\n")
		for line := range strings.SplitSeq(f.Cure, "\n") {
			text := strings.TrimLeft(line, " ")
			p.Printf("--   %s%s\n", line[:len(line)-len(text)], terminal.OneLine(text))
		}
	}
	if found == 0 {
		p.Printf("-- nothing found\n")
	}
}

// printable reports whether statements can be shown as they are: a name in them can contain anything.
func printable(statements []string) bool {
	return !slices.ContainsFunc(statements, func(statement string) bool {
		return strings.ContainsFunc(statement, func(r rune) bool { return !unicode.IsPrint(r) })
	})
}

// applied is a statement that --apply has run.
type applied struct {
	SQL   string `json:"sql"`
	Error string `json:"error,omitempty"`
}

// applyFix runs the cures of the findings, one statement after the other, each in its own transaction. After a statement that fails, the rest of
// that finding's cure is skipped.
func (x *examination) applyFix(ctx context.Context) ([]applied, error) {
	ran := []applied{}
	for _, f := range x.findings {
		if !f.counts() {
			continue
		}
		for _, statement := range f.Fix {
			err := x.runFix(ctx, statement)
			if ctx.Err() != nil {
				return ran, ctx.Err()
			}
			if err != nil {
				ran = append(ran, applied{statement, server.Problem(err)})
				break
			}
			ran = append(ran, applied{SQL: statement})
		}
	}
	return ran, nil
}

// runFix runs a statement. It waits at most 5 seconds for a lock, because everybody else waits after an ALTER TABLE that waits.
func (x *examination) runFix(ctx context.Context, statement string) error {
	return pgx.BeginFunc(ctx, x.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '5s'"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statement)
		return err
	})
}

// printApplied reports which statements were run.
func (x *examination) printApplied(p *cli.Program) {
	for _, a := range x.applied {
		if a.Error == "" {
			p.Printf("%s %s\n", p.Style.Green("ran    "), terminal.OneLine(a.SQL))
		} else {
			p.Printf("%s %s\n        %s\n", p.Style.Red("failed "), terminal.OneLine(a.SQL), terminal.OneLine(a.Error))
		}
	}
	if len(x.applied) > 0 {
		p.Printf("\n")
	}
}
