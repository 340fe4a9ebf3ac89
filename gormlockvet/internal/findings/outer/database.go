package outer

import (
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/handovers"
)

type fix = analysis.SuggestedFix

// otherDatabases are words in the names of fields and types by which a program tells a second database from its own.
var otherDatabases = []string{
	"analytic", "audit", "log", "metric", "event", "archive", "replica", "report", "stat", "search", "legacy", "read", "cache",
	"warehouse", "history", "tenant", "remote", "external", "other", "second", "backup", "source", "target", "mysql", "sqlite",
}

// sameDatabase reports whether a db that is kept elsewhere than the base is surely of the same database: a constructor
// says so, or both have one name and nothing speaks of a second database.
func (c *checker) sameDatabase(h *handovers.Handover, base, from flow.Origin) bool {
	kept := from.Kind == flow.Global || from.Kind == flow.Param && from.Path != "" && (from.Fn == h.In || around(from.Fn, h.Given.Fn))
	if !kept { // or it came with what the transaction gives: a repository made for it
		return false
	}
	if same, known := c.byConstructor(base, from); known {
		return same
	}
	name := strings.ToLower(from.Path + from.Name[strings.LastIndexByte(from.Name, '/')+1:])
	for _, word := range otherDatabases {
		if strings.Contains(name, word) {
			return false
		}
	}
	if h.Kind == gormapi.OnceKind && base.Kind == flow.Param && base.Path == "" {
		return last(from) != ""
	}
	return last(base) != "" && strings.EqualFold(last(base), last(from))
}

// last is the name by which a db is kept.
func last(o flow.Origin) string {
	if o.Path != "" {
		return o.Path[strings.LastIndexByte(o.Path, '.')+1:]
	}
	switch o.Kind {
	case flow.Global:
		return o.Name[strings.LastIndexByte(o.Name, '.')+1:]
	case flow.Param:
		return o.Fn.Params[o.Index].Name()
	default:
		return ""
	}
}

// byConstructor looks for the function that made the struct both dbs are kept in.
func (c *checker) byConstructor(base, from flow.Origin) (same, known bool) {
	if base.Kind != flow.Param || from.Kind != flow.Param || base.Fn != from.Fn || base.Index != from.Index || base.Path == "" {
		return false, false
	}
	made := gormapi.NamedOf(base.Fn.Params[base.Index].Type())
	if made == nil {
		return false, false
	}
	for fields := range c.p.Known.Constructors(made) {
		a, knowsA := placeOf(fields, base.Path)
		b, knowsB := placeOf(fields, from.Path)
		if !knowsA || !knowsB {
			continue
		}
		if a != b {
			return false, true
		}
		same, known = true, true
	}
	return same, known
}

func placeOf(fields []facts.FieldPlace, path string) (facts.Place, bool) {
	for _, f := range fields {
		if "."+f.Name == path {
			return f.Place, true
		}
	}
	return facts.Place{}, false
}
