package flow

import (
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// result follows what a call returns.
func (w *walker) result(call *ssa.Call, index int) []Chain {
	name := calls.Name(call)
	switch {
	case name == gormapi.Func{Pkg: gormapi.Gorm, Name: "Open"} && index == 0:
		return root(Origin{Kind: Opened, Value: call})
	case name == gormapi.Func{Pkg: gormapi.Gorm, Recv: "DB", Name: "Begin"}:
		return root(Origin{Kind: Begun, Value: call})
	case builds(name, call):
		return linked(w.value(calls.Receiver(call)), call)
	case name == gormapi.Func{Pkg: gormapi.Gorm, Name: "G"}:
		return linked(w.value(call.Call.Args[0]), call)
	}
	if known := w.chains.known.Of(call); known != nil && index < len(known.Results) && known.Results[index].Known {
		result := known.Results[index]
		var all []Chain
		for _, base := range w.place(call, result.Place) {
			base.Carry |= result.Carry
			all = append(all, base)
		}
		return all
	}
	if index == 0 && !call.Call.IsInvoke() && len(calls.Args(call)) == 0 && calls.Callee(call) != nil && calls.Receiver(call) == nil {
		return root(Origin{Kind: Global, Name: name.Pkg + "." + name.Name + "()"})
	}
	if recv := calls.Receiver(call); recv != nil && index == 0 && len(calls.Args(call)) == 0 {
		return within(w.value(recv), name.Name+"()")
	}
	if _, builtin := call.Call.Value.(*ssa.Builtin); !builtin && calls.Callee(call) == nil && index == 0 && len(call.Call.Args) == 0 {
		if given := w.value(call.Call.Value); len(given) == 1 && given[0].Root.Kind != Local { // a field that is a function
			return within(given, "()")
		}
	}
	return root(ResultOf(call, index))
}

// builds reports whether a call goes on with the statement of its receiver.
func builds(name gormapi.Func, call *ssa.Call) bool {
	if name.Pkg != gormapi.Gorm {
		return false
	}
	return name.Recv == "DB" && (gormapi.IsDB(call.Type()) || name.Name == "Association") ||
		name.Recv == "Association" && name.Name == "Unscoped" || gormapi.GenericRole(name) == gormapi.Builds
}

// place follows a place that a summary names, from where the function was called.
func (w *walker) place(call ssa.CallInstruction, at facts.Place) []Chain {
	if at.Global != "" {
		return root(Origin{Kind: Global, Name: at.Global, Path: at.Path})
	}
	args := calls.Params(call)
	if at.Param >= len(args) {
		return nil
	}
	all := w.value(args[at.Param])
	for _, field := range at.Fields() {
		var next []Chain
		for _, base := range all {
			next = merged(next, w.field(base, field))
		}
		all = next
	}
	return all
}
