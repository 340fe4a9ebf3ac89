// Package interfaces finds the one type of a package that can be meant where a method of an interface is called.
package interfaces

import (
	"go/types"
	"regexp"

	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// standIns are types that implement an interface for tests.
var standIns = regexp.MustCompile(`(?i)mock|fake|stub|noop|nop|dummy|spy`)

// Implementations returns, for the methods of interfaces that one type of the package alone implements, that type's.
func Implementations(scope *types.Scope) map[*types.Func]*types.Func {
	found := map[*types.Func]*types.Func{}
	for _, name := range scope.Names() {
		object, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || object.IsAlias() {
			continue
		}
		named, ok := object.Type().(*types.Named)
		if !ok || named.TypeParams().Len() > 0 {
			continue
		}
		wanted, ok := named.Underlying().(*types.Interface)
		if !ok || wanted.NumMethods() == 0 {
			continue
		}
		by := onlyImplementation(scope, wanted)
		if by == nil {
			continue
		}
		for method := range wanted.ExplicitMethods() {
			for i := range by.NumMethods() {
				if by.Method(i).Name() == method.Name() {
					found[method] = by.Method(i)
				}
			}
		}
	}
	return found
}

// Promises returns the methods of the package's interfaces, by their names.
func Promises(scope *types.Scope) map[string][]*types.Func {
	found := map[string][]*types.Func{}
	for _, name := range scope.Names() {
		object, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || object.IsAlias() {
			continue
		}
		if named, ok := object.Type().(*types.Named); ok && named.TypeParams().Len() == 0 {
			if wanted, ok := named.Underlying().(*types.Interface); ok {
				for method := range wanted.ExplicitMethods() {
					found[method.Name()] = append(found[method.Name()], method)
				}
			}
		}
	}
	return found
}

// Keeps reports whether a method is the only one in its package that can be meant by that of an interface.
func Keeps(method, promise *types.Func) bool {
	recv, wanted := method.Signature().Recv(), promise.Signature().Recv()
	if recv == nil || wanted == nil {
		return false
	}
	is, ok := wanted.Type().Underlying().(*types.Interface)
	if !ok {
		return false
	}
	only := onlyImplementation(method.Pkg().Scope(), is)
	return only != nil && only == gormapi.NamedOf(recv.Type())
}

func onlyImplementation(scope *types.Scope, wanted *types.Interface) (only *types.Named) {
	for _, name := range scope.Names() {
		object, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || object.IsAlias() || standIns.MatchString(name) {
			continue
		}
		named, ok := object.Type().(*types.Named)
		if !ok || types.IsInterface(named) || named.TypeParams().Len() > 0 || !types.Implements(types.NewPointer(named), wanted) {
			continue
		}
		if only != nil {
			return nil
		}
		only = named
	}
	return only
}
