package doctor

import (
	"fmt"
	"strings"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

// status is how bad a finding is.
type status string

const (
	ok      status = "ok"
	note    status = "note"    // good to know, but not a finding
	warning status = "warning" // locks are lost or not taken under some circumstances
	wrong   status = "wrong"   // locks or versions do not protect, and no error says so
	ignored status = "ignored" // the user ignores it
)

// finding is the result of one check.
type finding struct {
	Check  string   `json:"check"`
	Status status   `json:"status"`
	Says   string   `json:"says"`
	Cure   string   `json:"cure,omitempty"` // for people, SQL and words
	Fix    []string `json:"fix,omitempty"`  // the statements of Cure that are right for every program: --apply runs them

	note string // a remark about Fix
}

func (f finding) counts() bool { return f.Status == warning || f.Status == wrong }

func (x *examination) add(f finding) { x.findings = append(x.findings, f) }

func (x *examination) well(check, format string, args ...any) {
	x.add(finding{Check: check, Status: ok, Says: fmt.Sprintf(format, args...)})
}

// print shows the findings. The error says whether there are any.
func (x *examination) print(p *cli.Program) error {
	found := 0
	for _, f := range x.findings {
		if f.counts() {
			found++
		}
	}
	switch {
	case x.json:
		report := map[string]any{"server": x.server, "findings": x.findings, "found": found}
		if x.apply {
			report["applied"] = x.applied
		}
		if err := p.JSON(report); err != nil {
			return err
		}
	case x.fix:
		x.printFix(p)
	default:
		x.printApplied(p)
		x.printText(p, found)
	}
	if found > 0 {
		return cli.ErrFound
	}
	return nil
}

func (x *examination) printText(p *cli.Program, found int) {
	s := x.server
	if !x.quiet {
		p.Printf("%s, database %s, role %s, %s\n\n", terminal.OneLine(s.name()), terminal.OneLine(s.Database), terminal.OneLine(s.Role), server.Address(&x.config.Config))
	}
	paint := map[status]func(string) string{ok: p.Style.Green, note: p.Style.Dim, ignored: p.Style.Dim, warning: p.Style.Yellow, wrong: p.Style.Red}
	for _, f := range x.findings {
		if x.quiet && !f.counts() {
			continue
		}
		p.Printf("%s %s: %s\n", paint[f.Status](fmt.Sprintf("%-7s", f.Status)), p.Style.Bold(f.Check), terminal.OneLine(f.Says))
		if f.Cure != "" {
			for line := range strings.SplitSeq(f.Cure, "\n") {
				text := strings.TrimLeft(line, " ")
				p.Printf("        %s%s\n", line[:len(line)-len(text)], terminal.OneLine(text))
			}
		}
	}
	switch {
	case found > 0:
		p.Printf("\n%s\n", p.Style.Yellow(terminal.Count(found, "finding")))
	case !x.quiet:
		p.Printf("\n%s\n", p.Style.Green("nothing found"))
	}
}
