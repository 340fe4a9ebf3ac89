package code

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/interfaces"
)

// rounds bounds how deep the calls are that a summary sees through.
const rounds = 3

func (p *Package) summarize() {
	implementations := interfaces.Implementations(p.Pass.Pkg.Scope())
	for range rounds {
		p.Chains.Forget()
		next := map[*types.Func]*facts.Summary{}
		for _, fn := range p.Funcs {
			if object := calls.Declared(fn); object != nil && fn.Parent() == nil {
				next[object] = p.summary(fn)
			}
		}
		for object, s := range next {
			p.Known.Learn(object, s)
		}
		for method, by := range implementations {
			p.Known.Learn(method, p.Known.OfFunc(by))
		}
	}
	p.Chains.Forget()
	p.findHandovers()
	p.Known.Export()
}

func (p *Package) summary(fn *ssa.Function) *facts.Summary {
	s := &facts.Summary{Does: p.effectsOf(fn), Grows: p.growthOf(fn)}
	for i := range fn.Signature.Results().Len() {
		result, _ := facts.Agreed(fn, i, func(v ssa.Value) facts.Result { return p.resultFrom(fn, v) })
		s.Results = append(s.Results, result)
	}
	for _, part := range p.Order.RunBy(fn) {
		for call := range calls.In(part) {
			if p.Order.WithoutDB(fn, call) {
				continue
			}
			p.addStatement(s, fn, call)
			p.addCalled(s, fn, call)
		}
	}
	s.Hands = p.handedBy(fn)
	const most = 4
	for _, open := range p.OpensOf(fn) {
		if len(s.Opens) < most && !p.InTest(fn.Pos()) {
			s.Opens = append(s.Opens, open.Open)
		}
	}
	return s
}

// addStatement adds what a call does itself.
func (p *Package) addStatement(s *facts.Summary, fn *ssa.Function, call ssa.CallInstruction) {
	if name := calls.Name(call); name == (gormapi.Func{Pkg: gormapi.Gorm, Recv: "DB", Name: "Use"}) && MayInstall(calls.Args(call)[0]) {
		s.Installs = p.appendPlace(s.Installs, fn, p.Chains.Of(calls.Receiver(call)))
		return
	}
	statement, ok := p.Statements.Of(call)
	if !ok {
		return
	}
	s.Runs = p.appendPlace(s.Runs, fn, statement.On)
	if p.Carries.Locks(statement) {
		s.Locks = p.appendPlace(s.Locks, fn, statement.On)
	}
	if statement.Name.Name == "Save" && !statement.Ours() {
		if o, ok := p.Chains.Origin(calls.Args(call)[0]); ok && o.IsParam(fn) {
			s.Saves = append(s.Saves, o.Index)
		}
	}
}

// addCalled adds what a function does that is called.
func (p *Package) addCalled(s *facts.Summary, fn *ssa.Function, call ssa.CallInstruction) {
	known := p.Known.Of(call)
	if known == nil {
		return
	}
	for _, at := range known.Runs {
		s.Runs = p.appendPlace(s.Runs, fn, p.Chains.At(call, at))
	}
	for _, at := range known.Locks {
		s.Locks = p.appendPlace(s.Locks, fn, p.Chains.At(call, at))
	}
	for _, at := range known.Grows {
		s.Grows = p.appendPlace(s.Grows, fn, p.Chains.At(call, at))
	}
	for _, at := range known.Installs {
		s.Installs = p.appendPlace(s.Installs, fn, p.Chains.At(call, at))
	}
}

// appendPlace adds where fn has a value from, if that is known and not there yet.
func (p *Package) appendPlace(places []facts.Place, fn *ssa.Function, chains []flow.Chain) []facts.Place {
	const most = 16
	at, known := flow.PlaceOf(fn, chains)
	if !known || len(places) >= most || slices.Contains(places, at) {
		return places
	}
	return append(places, at)
}

// MayInstall reports whether what is given to Use can be the plugin.
func MayInstall(plugin ssa.Value) bool {
	made, ok := plugin.(*ssa.MakeInterface)
	if !ok || gormapi.Is(made.X.Type(), gormapi.Gormlock, "Plugin") {
		return true
	}
	named := gormapi.NamedOf(made.X.Type())
	if named == nil {
		return true
	}
	s, ok := named.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for field := range s.Fields() {
		if gormapi.Is(field.Type(), gormapi.Gormlock, "Plugin") {
			return true // a plugin of the program's around ours
		}
	}
	return false
}
