// Package calls reads the functions of a package one instruction at a time: which function a call names, and what it is
// given.
package calls

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// Callee returns the function or the interface's method that a call names, nil for a call of a value.
func Callee(call ssa.CallInstruction) *types.Func {
	common := call.Common()
	if common.IsInvoke() {
		return common.Method.Origin()
	}
	if fn := common.StaticCallee(); fn != nil {
		return Declared(fn)
	}
	return nil
}

// Name returns the name of what a call calls.
func Name(call ssa.CallInstruction) gormapi.Func {
	if fn := Callee(call); fn != nil {
		return gormapi.NameOf(fn)
	}
	return gormapi.Func{}
}

// Params returns what the parameters of the called function get, the receiver first.
func Params(call ssa.CallInstruction) []ssa.Value {
	if common := call.Common(); common.IsInvoke() {
		return append([]ssa.Value{common.Value}, common.Args...)
	}
	return call.Common().Args
}

// Args returns the arguments of a call without its receiver.
func Args(call ssa.CallInstruction) []ssa.Value {
	common := call.Common()
	if common.IsInvoke() || common.Signature().Recv() == nil || bound(call) != nil {
		return common.Args
	}
	if len(common.Args) == 0 {
		return nil
	}
	return common.Args[1:]
}

// Receiver returns the receiver of a method call, nil of any other.
func Receiver(call ssa.CallInstruction) ssa.Value {
	common := call.Common()
	switch {
	case common.IsInvoke():
		return common.Value
	case bound(call) != nil:
		return bound(call)
	case common.Signature().Recv() != nil && len(common.Args) > 0:
		return common.Args[0]
	}
	return nil
}

// bound returns the value of which a call calls a method's value.
func bound(call ssa.CallInstruction) ssa.Value {
	made, ok := call.Common().Value.(*ssa.MakeClosure)
	if ok && len(made.Bindings) == 1 && strings.HasSuffix(made.Fn.Name(), "$bound") {
		return made.Bindings[0]
	}
	return nil
}

// Builtin reports whether a call is one of a function that the language has: append, len, panic.
func Builtin(call ssa.CallInstruction) bool {
	_, ok := call.Common().Value.(*ssa.Builtin)
	return ok
}
