package main

import (
	"fmt"
	"strings"
)

// status is how bad a finding is.
type status string

const (
	ok      status = "ok"
	note    status = "note"    // good to know, and no finding
	warning status = "warning" // locks are lost or not taken under some circumstances
	wrong   status = "wrong"   // locks lie
	ignored status = "ignored" // the user knows
)

// finding is what one check has to say.
type finding struct {
	Check  string `json:"check"`
	Status status `json:"status"`
	Says   string `json:"says"`
	Cure   string `json:"cure,omitempty"`
}

func (f finding) counts() bool { return f.Status == warning || f.Status == wrong }

func (x *examination) add(f finding) { x.findings = append(x.findings, f) }

func (x *examination) well(check, format string, args ...any) {
	x.add(finding{Check: check, Status: ok, Says: fmt.Sprintf(format, args...)})
}

// print shows the findings. The error says whether there are any.
func (x *examination) print(p *program) error {
	found := 0
	for _, f := range x.findings {
		if f.counts() {
			found++
		}
	}
	if x.json {
		if err := p.json(map[string]any{"server": x.server, "findings": x.findings, "found": found}); err != nil {
			return err
		}
	} else {
		x.printText(p, found)
	}
	if found > 0 {
		return errFound
	}
	return nil
}

func (x *examination) printText(p *program, found int) {
	s := x.server
	if !x.quiet {
		p.printf("PostgreSQL %s, database %s, role %s, %s\n\n", oneLine(s.Version), oneLine(s.Database), oneLine(s.Role), address(&x.config.Config))
	}
	paint := map[status]func(string) string{ok: p.style.green, note: p.style.dim, ignored: p.style.dim, warning: p.style.yellow, wrong: p.style.red}
	for _, f := range x.findings {
		if x.quiet && !f.counts() {
			continue
		}
		p.printf("%s %s: %s\n", paint[f.Status](fmt.Sprintf("%-7s", f.Status)), p.style.bold(f.Check), oneLine(f.Says))
		if f.Cure != "" {
			for line := range strings.SplitSeq(f.Cure, "\n") {
				text := strings.TrimLeft(line, " ")
				p.printf("        %s%s\n", line[:len(line)-len(text)], oneLine(text))
			}
		}
	}
	switch {
	case found > 0:
		p.printf("\n%s\n", p.style.yellow(count(found, "finding")))
	case !x.quiet:
		p.printf("\n%s\n", p.style.green("nothing found"))
	}
}
