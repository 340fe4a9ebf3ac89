package code

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// Summary is what is known of a function where it is called, in other packages too.
type Summary struct {
	Runs     []Place  // statements run on these
	Results  []Result // one for each result
	Hands    []Hands  // functions that it is given and runs in a transaction, or under a lock
	Does     []Effect // what it does outside of the database
	Locks    []Place  // transactions in which it takes a lock
	Installs []Place  // dbs on which it installs the plugin
	Saves    []int    // parameters, pointers to structs, that it writes as a whole
	Grows    []Place  // slices that it appends to, given the db of a transaction
	Opens    []Open   // dbs that it opens without the plugin
}

// AFact makes a Summary a fact about a function.
func (*Summary) AFact() {}

func (s *Summary) String() string { return "gormlock summary" }

// Place names a value by where a function has it from.
type Place struct {
	Param  int    // the receiver is 0
	Global string // instead of a parameter
	Path   string // the fields read from it
}

func (p Place) fields() []string {
	if p.Path == "" {
		return nil
	}
	return strings.Split(p.Path[1:], ".")
}

// Result is what is known of a function's result.
type Result struct {
	Place
	Known  bool          // it comes from the place
	Carry  gormapi.Carry // what the db carries beyond that of the place
	Puts   gormapi.Carry // the result is a scope or a clause that puts this on a db
	Opened bool          // it was opened here
	Used   bool          // what was opened has the plugin
	Read   bool          // a struct that was read from the database
	Look   string        // a db whose Error says whether a lock was got or a tagged model written: the statement
	Fields []FieldPlace  // of a struct made here, by their names
}

// FieldPlace is where a field of a struct is from.
type FieldPlace struct {
	Name string // of the fields down to it, with dots between
	Place
}

// Hands says that the parameter Fn of a function is run there.
type Hands struct {
	Fn       int
	Kind     gormapi.Kind
	Base     Place
	HasBase  bool
	Locks    bool
	Attempts bool
	DB, Ctx  bool // the function is given the db, or a ctx that differs from the caller's
	Later    bool // not by the call, but by the function that it returns
}

// SummaryOf returns what is known of the function that a call names, nil if nothing is.
//
// A method of an interface has a summary where its package has one implementation of it and no more.
func (p *Package) SummaryOf(call ssa.CallInstruction) *Summary {
	fn := calls.Callee(call)
	if fn == nil || fn.Pkg() == nil || trusted(gormapi.PathOf(fn.Pkg())) {
		return nil
	}
	return p.summaryOf(fn)
}

func (p *Package) summaryOf(fn *types.Func) *Summary {
	if known, ok := p.summaries[fn]; ok {
		return known
	}
	if fn.Pkg() == p.Pass.Pkg {
		return nil
	}
	known := new(Summary)
	if !p.Pass.ImportObjectFact(fn, known) {
		known = nil
	}
	p.summaries[fn] = known
	return known
}

// trusted holds for packages whose insides are not the program's: what they do is in the tables of gormapi.
func trusted(path string) bool {
	return strings.HasPrefix(path, "gorm.io/") || strings.HasPrefix(path, "github.com/jackc/pgx/") || path == "database/sql" ||
		gormapi.OurPackage(path)
}

// rounds bounds how deep the calls are that a summary sees through.
const rounds = 3

func (p *Package) summarize() {
	implementations := p.implementations()
	for range rounds {
		clear(p.chains)
		next := map[*types.Func]*Summary{}
		for _, fn := range p.Funcs {
			if object := calls.Declared(fn); object != nil && fn.Parent() == nil {
				next[object] = p.summary(fn)
			}
		}
		for object, s := range next {
			p.summaries[object] = s
		}
		for method, by := range implementations {
			p.summaries[method] = p.summaries[by]
		}
	}
	clear(p.chains)
	p.findHandovers()
	for object, s := range p.summaries {
		if object.Pkg() == p.Pass.Pkg && s != nil && !s.empty() {
			p.Pass.ExportObjectFact(object, s)
		}
	}
}

func (s *Summary) empty() bool {
	for _, r := range s.Results {
		if r.Known || r.Look != "" || r.Puts != 0 || r.Opened || r.Read || len(r.Fields) > 0 {
			return false
		}
	}
	return len(s.Runs)+len(s.Hands)+len(s.Does)+len(s.Locks)+len(s.Installs)+len(s.Saves)+len(s.Grows)+len(s.Opens) == 0
}

func (p *Package) summary(fn *ssa.Function) *Summary {
	s := &Summary{Does: p.effectsOf(fn), Grows: p.growthOf(fn)}
	for i := range fn.Signature.Results().Len() {
		result, _ := p.resultOf(fn, i)
		s.Results = append(s.Results, result)
	}
	for _, part := range p.RunBy(fn) {
		for call := range calls.In(part) {
			if p.withoutDB(fn, call) {
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
func (p *Package) addStatement(s *Summary, fn *ssa.Function, call ssa.CallInstruction) {
	if name := calls.Name(call); name == (gormapi.Func{Pkg: gormapi.Gorm, Recv: "DB", Name: "Use"}) && MayInstall(calls.Args(call)[0]) {
		s.Installs = p.appendPlace(s.Installs, fn, p.Chains(calls.Receiver(call)))
		return
	}
	statement, ok := p.StatementOf(call)
	if !ok {
		return
	}
	s.Runs = p.appendPlace(s.Runs, fn, statement.On)
	if p.LocksBy(statement) {
		s.Locks = p.appendPlace(s.Locks, fn, statement.On)
	}
	if statement.Name.Name == "Save" && !statement.Ours() {
		if o, ok := p.Origin(calls.Args(call)[0]); ok && o.Kind == Param && o.Fn == fn && o.Path == "" {
			s.Saves = append(s.Saves, o.Index)
		}
	}
}

// addCalled adds what a function does that is called.
func (p *Package) addCalled(s *Summary, fn *ssa.Function, call ssa.CallInstruction) {
	known := p.SummaryOf(call)
	if known == nil {
		return
	}
	for _, at := range known.Runs {
		s.Runs = p.appendPlace(s.Runs, fn, p.At(call, at))
	}
	for _, at := range known.Locks {
		s.Locks = p.appendPlace(s.Locks, fn, p.At(call, at))
	}
	for _, at := range known.Grows {
		s.Grows = p.appendPlace(s.Grows, fn, p.At(call, at))
	}
	for _, at := range known.Installs {
		s.Installs = p.appendPlace(s.Installs, fn, p.At(call, at))
	}
}

// appendPlace adds where fn has a value from, if that is known and not there yet.
func (p *Package) appendPlace(places []Place, fn *ssa.Function, chains []Chain) []Place {
	const most = 16
	at, known := p.placeOf(fn, chains)
	if !known || len(places) >= most || slices.Contains(places, at) {
		return places
	}
	return append(places, at)
}

// placeOf returns where fn has a value from, if all ways say the same.
func (p *Package) placeOf(fn *ssa.Function, chains []Chain) (at Place, ok bool) {
	for i, c := range chains {
		var here Place
		switch {
		case c.Root.Kind == Param && c.Root.Fn == fn:
			here = Place{Param: c.Root.Index, Path: c.Root.Path}
		case c.Root.Kind == Global:
			here = Place{Global: c.Root.Name, Path: c.Root.Path}
		default:
			return Place{}, false
		}
		if i > 0 && here != at {
			return Place{}, false
		}
		at = here
	}
	return at, len(chains) > 0
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

// LocksBy reports whether a statement takes a lock that its transaction then holds.
func (p *Package) LocksBy(s Statement) bool {
	if ours, ok := gormapi.CallOf(s.Name); ok {
		return ours.Locks
	}
	for _, c := range s.On {
		if p.CarryOf(c).Locks() {
			return true
		}
	}
	return false
}
