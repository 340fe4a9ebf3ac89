package facts

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/gormlock/gormlock/gormlockvet/internal/models"
)

// Program is what is known of a package and of those below it: tagged models and their tables, and who installs the
// plugin.
type Program struct {
	Tables   []Table
	Triggers []string // tables whose version moves by a trigger of gormlock
	Prefixes []string // of table names, where the program sets one
	Singular bool     // tables are named by the singular somewhere
	Installs bool     // the plugin is installed on a db that was opened elsewhere
	Writes   bool     // rows of tagged models are written
	Names    bool     // the package imports GORM or gormlock
}

// Table is the table of a tagged model.
type Table struct {
	Model, Package string
	Name           string // empty: not known
	Given          bool   // by TableName, not by GORM's naming
	Version        string
	Fence          string
	Xmin           bool
	Defaulted      bool
	Unversioned    []string
}

// AFact makes a Program a fact about a package.
func (*Program) AFact() {}

func (*Program) String() string { return "gormlock program" }

// Below joins what the packages below say.
func Below(pass *analysis.Pass) *Program {
	program := new(Program)
	for _, fact := range pass.AllPackageFacts() {
		if below, ok := fact.Fact.(*Program); ok && fact.Package != pass.Pkg {
			program.Add(below)
		}
	}
	return program
}

// Empty reports whether there is nothing to tell.
func (p *Program) Empty() bool {
	return len(p.Tables)+len(p.Triggers)+len(p.Prefixes) == 0 && !p.Singular && !p.Installs && !p.Writes && !p.Names
}

// Add joins what another package says.
func (p *Program) Add(more *Program) {
	for _, t := range more.Tables {
		if !slices.ContainsFunc(p.Tables, func(have Table) bool { return have.Package == t.Package && have.Model == t.Model }) {
			p.Tables = append(p.Tables, t)
		}
	}
	p.Triggers = joined(p.Triggers, more.Triggers)
	p.Prefixes = joined(p.Prefixes, more.Prefixes)
	p.Singular = p.Singular || more.Singular
	p.Installs = p.Installs || more.Installs
	p.Writes = p.Writes || more.Writes
}

func joined(names, more []string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Named returns the tagged models whose table the name in a statement means.
func (p *Program) Named(table string) (found []*Table) {
	for i, t := range p.Tables {
		if slices.ContainsFunc(p.namesOf(t), func(name string) bool { return sameTable(name, table) }) {
			found = append(found, &p.Tables[i])
		}
	}
	return found
}

func (p *Program) namesOf(t Table) []string {
	if t.Name == "" {
		return nil
	}
	names := []string{t.Name}
	if t.Given {
		return names
	}
	if p.Singular {
		names = append(names, models.SingularTableName(t.Model))
	}
	for _, prefix := range p.Prefixes {
		for _, name := range names {
			names = append(names, prefix+name)
		}
	}
	return names
}

// HasTrigger reports whether the program gives the table a trigger that moves its version.
func (p *Program) HasTrigger(t *Table) bool {
	return slices.ContainsFunc(p.Triggers, func(name string) bool { return sameTable(name, t.Name) })
}

// sameTable compares names that may have a schema. Without one the name may be of the schema public.
func sameTable(a, b string) bool {
	plain := func(name string) string { return strings.TrimPrefix(strings.ToLower(name), "public.") }
	return plain(a) == plain(b)
}
