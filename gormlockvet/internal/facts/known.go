package facts

import (
	"go/types"
	"iter"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// Known has the summaries of the functions that a package calls: of its own as they become known, of others as they are
// asked for.
type Known struct {
	pass      *analysis.Pass
	summaries map[*types.Func]*Summary
}

// NewKnown returns what is known before the package itself is read.
func NewKnown(pass *analysis.Pass) *Known {
	return &Known{pass: pass, summaries: map[*types.Func]*Summary{}}
}

// Of returns what is known of the function that a call names, nil if nothing is.
//
// A method of an interface has a summary where its package has one implementation of it and no more.
func (k *Known) Of(call ssa.CallInstruction) *Summary {
	fn := calls.Callee(call)
	if fn == nil || fn.Pkg() == nil || Trusted(gormapi.PathOf(fn.Pkg())) {
		return nil
	}
	return k.OfFunc(fn)
}

// OfFunc is Of for a function by itself.
func (k *Known) OfFunc(fn *types.Func) *Summary {
	if summary, ok := k.summaries[fn]; ok {
		return summary
	}
	if fn.Pkg() == k.pass.Pkg {
		return nil
	}
	summary := new(Summary)
	if !k.pass.ImportObjectFact(fn, summary) {
		summary = nil
	}
	k.summaries[fn] = summary
	return summary
}

// Learn keeps what is found out of a function of the package.
func (k *Known) Learn(fn *types.Func, s *Summary) { k.summaries[fn] = s }

// Export makes what was learned known to other packages.
func (k *Known) Export() {
	for fn, s := range k.summaries {
		if fn.Pkg() == k.pass.Pkg && s != nil && !s.empty() {
			k.pass.ExportObjectFact(fn, s)
		}
	}
}

// Constructors yields what the functions of the package that return a struct put into its fields.
func (k *Known) Constructors(made *types.Named) iter.Seq[[]FieldPlace] {
	return func(yield func([]FieldPlace) bool) {
		for fn, s := range k.summaries {
			if s == nil || fn.Pkg() != k.pass.Pkg {
				continue
			}
			for i, r := range s.Results {
				if len(r.Fields) > 0 && gormapi.NamedOf(fn.Signature().Results().At(i).Type()) == made && !yield(r.Fields) {
					return
				}
			}
		}
	}
}

// Trusted holds for packages whose insides are not the program's: what they do is in the tables of gormapi.
func Trusted(path string) bool {
	return strings.HasPrefix(path, "gorm.io/") || strings.HasPrefix(path, "github.com/jackc/pgx/") || path == "database/sql" ||
		gormapi.OurPackage(path)
}
