package code

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// build makes the SSA form of the package, as buildssa does, which would make it of packages that do not matter too.
func build(pass *analysis.Pass) (funcs []*ssa.Function) {
	prog := ssa.NewProgram(pass.Fset, 0)
	for _, imported := range pass.Pkg.Imports() {
		prog.CreatePackage(imported, nil, nil, true)
	}
	built := prog.CreatePackage(pass.Pkg, pass.Files, pass.TypesInfo, false)
	built.Build()
	var add func(fn *ssa.Function)
	add = func(fn *ssa.Function) {
		funcs = append(funcs, fn)
		for _, literal := range fn.AnonFuncs {
			add(literal)
		}
	}
	for _, file := range pass.Files {
		for _, decl := range file.Decls {
			if decl, ok := decl.(*ast.FuncDecl); ok {
				if fn, ok := pass.TypesInfo.Defs[decl.Name].(*types.Func); ok && prog.FuncValue(fn) != nil {
					add(prog.FuncValue(fn))
				}
			}
		}
	}
	if initial := built.Func("init"); initial != nil { // makes the package's variables
		add(initial)
	}
	return funcs
}
