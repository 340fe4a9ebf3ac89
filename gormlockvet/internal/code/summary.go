package code

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/effects"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/opens"
)

// rounds bounds how deep the calls are that a summary sees through.
const rounds = 3

// summarizer finds out what the functions of a package do, for those who call them.
type summarizer struct {
	*Package
	effects *effects.Effects
	opens   *opens.Opens
	results results
}

func newSummarizer(pass *analysis.Pass, p *Package, opens *opens.Opens) *summarizer {
	return &summarizer{
		Package: p, effects: effects.New(pass.Pkg, p.Order, p.Known), opens: opens,
		results: results{p.Variables, p.Chains, p.Known, p.Carries, opens},
	}
}

// summarize finds out more in each round, for a function that calls others is known when they are.
func (sz *summarizer) summarize(implementations map[*types.Func]*types.Func) {
	for range rounds {
		sz.Chains.Forget()
		next := map[*types.Func]*facts.Summary{}
		for _, fn := range sz.Funcs {
			if object := calls.Declared(fn); object != nil && fn.Parent() == nil {
				next[object] = sz.summary(fn)
			}
		}
		for object, s := range next {
			sz.Known.Learn(object, s)
		}
		for method, by := range implementations {
			sz.Known.Learn(method, sz.Known.OfFunc(by))
		}
	}
	sz.Chains.Forget()
}

func (sz *summarizer) summary(fn *ssa.Function) *facts.Summary {
	s := &facts.Summary{Does: sz.effects.Of(fn), Grows: sz.growthOf(fn)}
	for i := range fn.Signature.Results().Len() {
		s.Results = append(s.Results, sz.results.of(fn, i))
	}
	for _, part := range sz.Order.RunBy(fn) {
		for call := range calls.In(part) {
			if sz.Order.WithoutDB(fn, call) {
				continue
			}
			sz.addStatement(s, fn, call)
			sz.addCalled(s, fn, call)
		}
	}
	s.Hands = sz.Handovers.By(fn)
	const most = 4
	for _, open := range sz.opens.In(fn) {
		if len(s.Opens) < most && !sz.Source.InTest(fn.Pos()) {
			s.Opens = append(s.Opens, open.Open)
		}
	}
	return s
}

// addStatement adds what a call does itself.
func (sz *summarizer) addStatement(s *facts.Summary, fn *ssa.Function, call ssa.CallInstruction) {
	if opens.Installs(call) {
		s.Installs = appendPlace(s.Installs, fn, sz.Chains.Of(calls.Receiver(call)))
		return
	}
	statement, ok := sz.Statements.Of(call)
	if !ok {
		return
	}
	s.Runs = appendPlace(s.Runs, fn, statement.On)
	if sz.Carries.Locks(statement) {
		s.Locks = appendPlace(s.Locks, fn, statement.On)
	}
	if statement.Name.Name == "Save" && !statement.Ours() {
		if o, ok := sz.Chains.Origin(calls.Args(call)[0]); ok && o.IsParam(fn) {
			s.Saves = append(s.Saves, o.Index)
		}
	}
}

// addCalled adds what a function does that is called.
func (sz *summarizer) addCalled(s *facts.Summary, fn *ssa.Function, call ssa.CallInstruction) {
	known := sz.Known.Of(call)
	if known == nil {
		return
	}
	for _, at := range known.Runs {
		s.Runs = appendPlace(s.Runs, fn, sz.Chains.At(call, at))
	}
	for _, at := range known.Locks {
		s.Locks = appendPlace(s.Locks, fn, sz.Chains.At(call, at))
	}
	for _, at := range known.Grows {
		s.Grows = appendPlace(s.Grows, fn, sz.Chains.At(call, at))
	}
	for _, at := range known.Installs {
		s.Installs = appendPlace(s.Installs, fn, sz.Chains.At(call, at))
	}
}

// appendPlace adds where fn has a value from, if that is known and not there yet.
func appendPlace(places []facts.Place, fn *ssa.Function, chains []flow.Chain) []facts.Place {
	const most = 16
	at, known := flow.PlaceOf(fn, chains)
	if !known || len(places) >= most || slices.Contains(places, at) {
		return places
	}
	return append(places, at)
}
