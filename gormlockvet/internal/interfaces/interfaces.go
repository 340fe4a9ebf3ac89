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
		if !ok {
			continue
		}
		wanted, ok := named.Underlying().(*types.Interface)
		if !ok || wanted.NumMethods() == 0 {
			continue
		}
		by := onlyImplementation(scope, named)
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
		if named, ok := object.Type().(*types.Named); ok {
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
	is, ok := wanted.Type().(*types.Named)
	if !ok || !types.IsInterface(is) {
		return false
	}
	only := onlyImplementation(method.Pkg().Scope(), is.Origin())
	return only != nil && only == gormapi.NamedOf(recv.Type()).Origin()
}

// onlyImplementation returns the one type that implements an interface, which may be generic as the interface is.
func onlyImplementation(scope *types.Scope, wanted *types.Named) (only *types.Named) {
	for _, name := range scope.Names() {
		object, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || object.IsAlias() || standIns.MatchString(name) {
			continue
		}
		named, ok := object.Type().(*types.Named)
		if !ok || types.IsInterface(named) {
			continue
		}
		implements, may := implement(named, wanted)
		if may && (only != nil || !implements) {
			return nil
		}
		if implements {
			only = named
		}
	}
	return only
}

// implement reports whether a type implements an interface whatever the parameters of both are, and whether it may for some.
func implement(named, wanted *types.Named) (does, may bool) {
	methods := wanted.Underlying().(*types.Interface)
	params := wanted.TypeParams()
	switch named.TypeParams().Len() {
	case 0:
		does = types.Implements(types.NewPointer(named), methods)
		return does, does || params.Len() > 0 && hasAll(named, methods)
	case params.Len():
		var same []types.Type
		for param := range params.TypeParams() {
			same = append(same, param)
		}
		instance, err := types.Instantiate(nil, named, same, false)
		does = err == nil && types.Implements(types.NewPointer(instance), methods)
		return does, does || hasAll(named, methods)
	}
	return false, params.Len() > 0 && hasAll(named, methods)
}

// hasAll reports whether a type has methods of these names.
func hasAll(named *types.Named, wanted *types.Interface) bool {
	for method := range wanted.Methods() {
		if found, _, _ := types.LookupFieldOrMethod(types.NewPointer(named), true, method.Pkg(), method.Name()); found == nil {
			return false
		}
	}
	return true
}
