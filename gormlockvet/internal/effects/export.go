package effects

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/interfaces"
)

// Export tells of a package without GORM which of its functions do something outside of the database.
func Export(pass *analysis.Pass) {
	if !callsOut(pass.Pkg) || facts.Trusted(gormapi.PathOf(pass.Pkg)) {
		return
	}
	var promised map[string][]*types.Func
	for _, file := range pass.Files {
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			object, ok := pass.TypesInfo.Defs[fn.Name].(*types.Func)
			if found := effectsIn(pass.TypesInfo, fn.Body); ok && len(found) > 0 {
				pass.ExportObjectFact(object, &facts.Summary{Does: found})
				if promised == nil {
					promised = interfaces.Promises(pass.Pkg.Scope())
				}
				for _, method := range promised[object.Name()] {
					if interfaces.Keeps(object, method) {
						pass.ExportObjectFact(method, &facts.Summary{Does: found})
					}
				}
			}
		}
	}
}

func callsOut(pkg *types.Package) bool {
	for _, imported := range pkg.Imports() {
		switch path := imported.Path(); path {
		case "net/http", "net/smtp", "net", "os", "google.golang.org/grpc":
			return true
		default:
			if strings.HasPrefix(path, "github.com/go-resty/resty") {
				return true
			}
		}
	}
	return false
}

// effectsIn returns what the statements of a function do themselves. Function literals may run later.
func effectsIn(info *types.Info, body *ast.BlockStmt) (found []facts.Effect) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.GoStmt:
			return false
		case *ast.CallExpr:
			if fn, ok := typeutil.Callee(info, n).(*types.Func); ok {
				name := gormapi.NameOf(fn)
				if kind := of(name); kind == facts.Network || kind == facts.File || kind == facts.Sleep {
					found = with(found, facts.Effect{Kind: kind, What: name.Show(), Depth: 1})
				}
			}
		}
		return true
	})
	return found
}
