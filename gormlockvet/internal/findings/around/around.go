// Package around finds writes that go around the version or the fence of a model.
package around

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/code"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/models"
	"github.com/gormlock/gormlock/gormlockvet/internal/reads"
	"github.com/gormlock/gormlock/gormlockvet/internal/sqltext"
	"github.com/gormlock/gormlock/gormlockvet/internal/statements"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Analyzer is the finding.
var Analyzer = code.New("around", "find writes that go around the version of a model\n\n"+
	"SQL text and Table(…) write rows of which gormlock sees no model: the version is neither compared nor moved, and\n"+
	"whoever has read the row overwrites the change. A struct that was read by a Select of some columns and is saved\n"+
	"whole writes zeros over the others.", run)

func run(pass *analysis.Pass, p *code.Package) {
	if gormapi.OurPackage(gormapi.PathOf(pass.Pkg)) {
		return
	}
	c := checker{pass: pass, p: p, reads: reads.New(pass.Pkg, p.Variables, p.Chains, p.Known, p.Statements)}
	for _, fn := range p.Funcs {
		for call := range calls.In(fn) {
			c.text(call)
			if s, ok := p.Statements.Of(call); ok && !s.Ours() {
				c.table(s)
				c.byHand(s)
				c.partlyRead(fn, s)
			}
		}
	}
}

type checker struct {
	pass  *analysis.Pass
	p     *code.Package
	reads *reads.Reads
}

// text looks at SQL text.
func (c *checker) text(call ssa.CallInstruction) {
	text, ok := textOf(c.p.Variables, call)
	if !ok {
		return
	}
	for _, w := range sqltext.Writes(text) {
		if why := why(c.p.Program, w, text); why != "" {
			c.p.Report(c.pass, call.Pos(), "%s", why)
		}
	}
}

// why says what is wrong with a write of SQL text; nothing where it does by hand what gormlock would. Of several models of
// one table each has to say so.
func why(program *facts.Program, w sqltext.Write, text string) (first string) {
	for _, t := range program.Named(w.Table) {
		text := wrong(program, w, text, t)
		if text == "" {
			return ""
		}
		if first == "" {
			first = text
		}
	}
	return first
}

func wrong(program *facts.Program, w sqltext.Write, text string, t *facts.Table) string {
	if t.Fence != "" && !sqltext.Mentions(text, t.Fence) && !sqltext.Mentions(text, "gormlock_fence") {
		return verbs[w.Verb] + " of " + w.Table + " is not guarded by its fence: a holder that was superseded can write it. " +
			"Write it through the model " + t.Model + ", or put the token's Guard into the condition"
	}
	if t.Version == "" || t.Xmin {
		return ""
	}
	named := slices.ContainsFunc(w.Columns, func(c string) bool { return strings.EqualFold(c, t.Version) })
	switch w.Verb {
	case sqltext.Update, sqltext.Upsert:
		if !w.Known || named || only(w.Columns, t.Unversioned) || program.HasTrigger(t) {
			return ""
		}
		return verbs[w.Verb] + " of " + w.Table + " does not move its version: who has read the row overwrites the change. " +
			"Write it through the model " + t.Model + ", add " + t.Version + " = " + t.Version + " + 1, or install gormlock.VersionTrigger"
	case sqltext.Insert:
		if !w.Known || named || t.Defaulted || len(w.Columns) == 0 {
			return ""
		}
		return "INSERT into " + w.Table + " gives its rows no version: add " + t.Version + " to the columns, or a default to the table"
	case sqltext.Delete:
		if sqltext.Mentions(text, t.Version) {
			return ""
		}
		return "DELETE of " + w.Table + " compares no version: a change that was made since the row was read is lost. " +
			"Delete the struct through the model " + t.Model + ", or compare " + t.Version
	}
	return ""
}

var verbs = map[sqltext.Verb]string{
	sqltext.Update: "UPDATE", sqltext.Insert: "INSERT", sqltext.Upsert: "ON CONFLICT DO UPDATE", sqltext.Delete: "DELETE",
}

func only(columns, of []string) bool {
	return len(columns) > 0 && !slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(of, strings.ToLower(c)) })
}

// table looks at writes by Table("…"), where nothing tells GORM of the model.
func (c *checker) table(s statements.Statement) {
	if s.Role != gormapi.Writes {
		return
	}
	name := ""
	for link := range s.Links() {
		switch calls.Name(link).Name {
		case "Table":
			name, _ = values.String(calls.Args(link)[0])
		case "G":
			return // it names the model
		}
	}
	name = strings.Trim(firstWord(name), `"`)
	if name == "" {
		return
	}
	for _, about := range s.Types() {
		if models.NamedOf(about) != nil && models.OfType(about).Tagged() {
			return
		}
	}
	w := sqltext.Write{Verb: sqltext.Update, Table: name}
	args := calls.Args(s.Call)
	switch s.Name.Name {
	case "Update", "UpdateColumn":
		if column, ok := values.String(args[0]); ok {
			w.Columns, w.Known = []string{column}, true
		}
	case "Create", "CreateInBatches":
		w.Verb = sqltext.Insert
		w.Columns, w.Known = keys(args[0])
	case "Delete":
		w.Verb, w.Known = sqltext.Delete, true
	default:
		if w.Columns, w.Known = keys(args[0]); len(w.Columns) == 0 {
			w.Columns, w.Known = []string{"?"}, true // a struct or a map that is not of the model
		}
	}
	if why := why(c.p.Program, w, conditions(s)); why != "" {
		c.p.Report(c.pass, s.Call.Pos(), "Table(%q) names no model: %s", name, why)
	}
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return word
}

func keys(v ssa.Value) ([]string, bool) {
	given, ok := values.Map(v)
	names := make([]string, 0, len(given))
	for name := range given {
		names = append(names, name)
	}
	return names, ok
}

// conditions is the text of Where, for a version that is compared by hand.
func conditions(s statements.Statement) string {
	var text strings.Builder
	for link := range s.Links() {
		if args := calls.Args(link); calls.Name(link).Name == "Where" {
			condition, _ := values.String(args[0])
			text.WriteString(condition + " ")
		}
	}
	return text.String()
}

// byHand finds UpdateColumn of the version.
func (c *checker) byHand(s statements.Statement) {
	m := s.Written()
	if m == nil || m.Version == "" || s.Name.Recv != "DB" {
		return
	}
	var columns []string
	switch args := calls.Args(s.Call); s.Name.Name {
	case "UpdateColumn":
		if column, ok := values.String(args[0]); ok {
			columns = []string{column}
		}
	case "UpdateColumns":
		columns, _ = keys(args[0])
	}
	if len(columns) == 1 && m.IsColumn(columns[0]) {
		c.p.Report(c.pass, s.Call.Pos(), "%s of the version of %s: gormlock moves it, and takes one that is given for the one expected. "+
			"To move it alone call gormlock.Touch", s.Name.Name, m.Name)
	}
}

// partlyRead finds a Save of a struct of which only some columns were read.
func (c *checker) partlyRead(fn *ssa.Function, s statements.Statement) {
	if s.Name.Name != "Save" || narrowed(s) {
		return
	}
	arg := calls.Args(s.Call)[0]
	m := models.OfType(values.Bare(arg).Type())
	struc, ok := c.p.Chains.Struct(arg)
	if !m.Tagged() || !ok {
		return
	}
	var partial *reads.Read
	for _, r := range c.reads.Of(struc, fn) {
		if !c.p.Order.Before(r.At, s.Call) {
			if r.At.Parent() == s.Call.Parent() && !calls.ReachableFrom(r.At, s.Call) {
				continue
			}
			return // it may be read whole on another way
		}
		switch {
		case !r.Some:
			partial = nil
		default:
			partial = &r
		}
	}
	if partial == nil || !leavesOut(m, *partial) {
		return
	}
	c.p.Report(c.pass, s.Call.Pos(), "Save writes all columns of %s, and line %d read only some of them: the others are overwritten with zeros. "+
		"Read the whole struct, or write with Select", m.Name, c.pass.Fset.Position(partial.At.Pos()).Line)
}

func narrowed(s statements.Statement) bool {
	for link := range s.Links() {
		if name := calls.Name(link).Name; name == "Select" || name == "Omit" {
			return true
		}
	}
	return false
}

// leavesOut reports whether a column is missing. Names may be those of fields.
func leavesOut(m *models.Model, r reads.Read) bool {
	if r.Columns == nil {
		return true // Omit
	}
	return slices.ContainsFunc(m.Columns, func(column string) bool {
		plain := strings.ReplaceAll(column, "_", "")
		return !slices.ContainsFunc(r.Columns, func(read string) bool {
			return strings.EqualFold(strings.ReplaceAll(read, "_", ""), plain)
		})
	})
}
