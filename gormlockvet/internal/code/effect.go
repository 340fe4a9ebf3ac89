package code

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/interfaces"
)

var effects = map[gormapi.Func]facts.EffectKind{
	{Pkg: "time", Name: "Sleep"}: facts.Sleep,

	{Pkg: "os/exec", Recv: "Cmd", Name: "Run"}:            facts.OtherProgram,
	{Pkg: "os/exec", Recv: "Cmd", Name: "Output"}:         facts.OtherProgram,
	{Pkg: "os/exec", Recv: "Cmd", Name: "CombinedOutput"}: facts.OtherProgram,
	{Pkg: "os/exec", Recv: "Cmd", Name: "Wait"}:           facts.OtherProgram,

	{Pkg: "net/smtp", Name: "SendMail"}:                        facts.Network,
	{Pkg: "net", Name: "Dial"}:                                 facts.Network,
	{Pkg: "net", Name: "DialTimeout"}:                          facts.Network,
	{Pkg: "net", Recv: "Dialer", Name: "DialContext"}:          facts.Network,
	{Pkg: "net/http", Recv: "RoundTripper", Name: "RoundTrip"}: facts.Network,
	{Pkg: "net/http", Recv: "Transport", Name: "RoundTrip"}:    facts.Network,

	{Pkg: "net/http", Recv: "ResponseWriter", Name: "Write"}:       facts.Answer,
	{Pkg: "net/http", Recv: "ResponseWriter", Name: "WriteHeader"}: facts.Answer,
	{Pkg: "net/http", Name: "Error"}:                               facts.Answer,
	{Pkg: "net/http", Name: "Redirect"}:                            facts.Answer,

	{Pkg: "os", Name: "WriteFile"}:  facts.File,
	{Pkg: "os", Name: "Create"}:     facts.File,
	{Pkg: "os", Name: "Remove"}:     facts.File,
	{Pkg: "os", Name: "RemoveAll"}:  facts.File,
	{Pkg: "os", Name: "Rename"}:     facts.File,
	{Pkg: "os", Name: "Truncate"}:   facts.File,
	{Pkg: "os", Name: "Mkdir"}:      facts.File,
	{Pkg: "os", Name: "Symlink"}:    facts.File,
	{Pkg: "os", Name: "CreateTemp"}: facts.File,

	{Pkg: "os", Recv: "File", Name: "Write"}:       facts.File,
	{Pkg: "os", Recv: "File", Name: "WriteString"}: facts.File,
	{Pkg: "os", Recv: "File", Name: "Truncate"}:    facts.File,
}

// webAnswers are the methods by which the context of a web framework answers.
var webAnswers = map[string]bool{
	"JSON": true, "String": true, "HTML": true, "XML": true, "Redirect": true, "AbortWithStatusJSON": true, "SendString": true,
	"SendStatus": true, "NoContent": true, "IndentedJSON": true, "Data": true, "Blob": true,
}

// EffectOf returns what a function of the standard library, or of a library that many use, does.
func EffectOf(f gormapi.Func) facts.EffectKind {
	if kind := effects[f]; kind != 0 {
		return kind
	}
	switch {
	case f.Pkg == "net/http" && (f.Recv == "" || f.Recv == "Client"):
		switch f.Name {
		case "Get", "Post", "PostForm", "Head", "Do":
			return facts.Network
		}
	case strings.HasPrefix(f.Pkg, "github.com/go-resty/resty") && f.Recv == "Request":
		switch f.Name {
		case "Get", "Post", "Put", "Patch", "Delete", "Head", "Execute", "Send":
			return facts.Network
		}
	case f.Pkg == "google.golang.org/grpc" && (f.Recv == "ClientConn" || f.Recv == "ClientConnInterface") &&
		(f.Name == "Invoke" || f.Name == "NewStream"):
		return facts.Network
	case (strings.HasPrefix(f.Pkg, "github.com/gin-gonic/gin") || strings.HasPrefix(f.Pkg, "github.com/labstack/echo") ||
		strings.HasPrefix(f.Pkg, "github.com/gofiber/fiber")) && (f.Recv == "Context" || f.Recv == "Ctx") && webAnswers[f.Name]:
		return facts.Answer
	}
	return 0
}

// Show returns a function as a reader knows it.
func Show(f gormapi.Func) string {
	name := f.Name
	if f.Recv != "" {
		name = f.Recv + "." + name
	}
	return f.Pkg[strings.LastIndexByte(f.Pkg, '/')+1:] + "." + name
}

// deepest is how many calls away an effect is still told of.
const deepest = 2

// effectsOf returns the effects of fn and of what it calls.
func (p *Package) effectsOf(fn *ssa.Function) (found []facts.Effect) {
	for _, part := range p.Order.RunBy(fn) {
		for instr := range calls.Instructions(part) {
			for _, e := range p.EffectsAt(instr) {
				if e.Depth++; e.Depth <= deepest {
					found = appendEffect(found, e)
				}
			}
		}
	}
	return found
}

// EffectsAt returns the effects of one instruction.
func (p *Package) EffectsAt(instr ssa.Instruction) []facts.Effect {
	switch instr := instr.(type) {
	case *ssa.UnOp:
		if instr.Op.String() == "<-" {
			return []facts.Effect{{Kind: facts.Wait, What: "a receive"}}
		}
	case *ssa.Select:
		if instr.Blocking {
			return []facts.Effect{{Kind: facts.Wait, What: "a select"}}
		}
	case *ssa.Go:
		return nil
	case ssa.CallInstruction:
		return p.effectsOfCall(instr)
	}
	return nil
}

func (p *Package) effectsOfCall(call ssa.CallInstruction) []facts.Effect {
	name := calls.Name(call)
	if kind := EffectOf(name); kind != 0 {
		return []facts.Effect{{Kind: kind, What: Show(name)}}
	}
	if kind := answersBy(call); kind != 0 {
		return []facts.Effect{{Kind: kind, What: Show(name)}}
	}
	known := p.Known.Of(call)
	if known == nil {
		return nil
	}
	var found []facts.Effect
	for _, e := range known.Does {
		if e.Kind == facts.Wait && calls.Callee(call).Pkg() != p.Pass.Pkg {
			continue // what other packages wait for is their own affair: a pool, a limiter
		}
		e.What = name.Name + ", which calls " + e.What
		found = append(found, e)
	}
	return found
}

// answersBy returns Answer of a call that writes into an http.ResponseWriter: fmt.Fprintf(w, …), json.NewEncoder(w).
func answersBy(call ssa.CallInstruction) facts.EffectKind {
	name := calls.Name(call)
	if name.Pkg != "fmt" && name.Pkg != "io" && name.Pkg != "encoding/json" || len(call.Common().Args) == 0 {
		return 0
	}
	for _, arg := range call.Common().Args {
		if converted, ok := arg.(*ssa.ChangeInterface); ok && gormapi.Is(converted.X.Type(), "net/http", "ResponseWriter") {
			return facts.Answer
		}
	}
	return 0
}

func appendEffect(found []facts.Effect, e facts.Effect) []facts.Effect {
	const most = 8
	for _, have := range found {
		if have.Kind == e.Kind {
			return found
		}
	}
	if len(found) < most {
		found = append(found, e)
	}
	return found
}

// exportEffects tells of a package without GORM which of its functions do something outside of the database.
func exportEffects(pass *analysis.Pass) {
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
				if kind := EffectOf(name); kind == facts.Network || kind == facts.File || kind == facts.Sleep {
					found = appendEffect(found, facts.Effect{Kind: kind, What: Show(name), Depth: 1})
				}
			}
		}
		return true
	})
	return found
}
