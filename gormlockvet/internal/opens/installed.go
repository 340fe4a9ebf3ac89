package opens

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// By returns where a db was opened that is nothing else on another way.
func (ops *Opens) By(chains []flow.Chain) (opened flow.Origin, ok bool) {
	o, ok := flow.Root(chains)
	if !ok {
		return flow.Origin{}, false
	}
	switch o.Kind {
	case flow.Opened:
		return o, true
	case flow.Local:
		call, ok := o.Value.(*ssa.Call)
		if !ok {
			return flow.Origin{}, false
		}
		known := ops.known.Of(call)
		if i := o.Result(); known != nil && i < len(known.Results) && known.Results[i].Opened {
			return o, true
		}
	default: // it is somebody else's
	}
	return flow.Origin{}, false
}

// Installed reports whether fn, or a function that it calls, installs the plugin on what was opened.
func (ops *Opens) Installed(fn *ssa.Function, opened flow.Origin) bool {
	if call, ok := opened.Value.(*ssa.Call); ok && opened.Kind == flow.Local {
		if known := ops.known.Of(call); known != nil && known.Results[opened.Result()].Used {
			return true
		}
	}
	is := func(chains []flow.Chain) bool {
		return slices.ContainsFunc(chains, func(c flow.Chain) bool { return c.Root == opened })
	}
	for _, part := range calls.Family(fn) { // a step in a list of steps counts
		for call := range calls.In(part) {
			if Installs(call) && is(ops.chains.Of(calls.Receiver(call))) {
				return true
			}
			if known := ops.known.Of(call); known != nil {
				for _, at := range known.Installs {
					if is(ops.chains.At(call, at)) {
						return true
					}
				}
			}
		}
	}
	return false
}

// Installs reports whether a call may install the plugin on its receiver.
func Installs(call ssa.CallInstruction) bool {
	return calls.Name(call) == (gormapi.Func{Pkg: gormapi.Gorm, Recv: "DB", Name: "Use"}) && mayInstall(calls.Args(call)[0])
}

// mayInstall reports whether what is given to Use can be the plugin.
func mayInstall(plugin ssa.Value) bool {
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
