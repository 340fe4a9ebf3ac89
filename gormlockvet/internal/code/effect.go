package code

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// Effect is something that a function does outside of the database.
type Effect struct {
	Kind  EffectKind
	What  string // as it is called: net/http.Post
	Depth int    // how many calls away
}

// EffectKind is what an effect is for those who wait for it, or for a second run.
type EffectKind uint8

// The kinds.
const (
	Network EffectKind = iota + 1 // a request to somebody else
	Answer                        // a part of the answer to a request
	File                          // a change of a file
	Sleep
	Wait         // for a channel
	OtherProgram // is run, and waited for
)

var effects = map[gormapi.Func]EffectKind{
	{Pkg: "time", Name: "Sleep"}: Sleep,

	{Pkg: "os/exec", Recv: "Cmd", Name: "Run"}:            OtherProgram,
	{Pkg: "os/exec", Recv: "Cmd", Name: "Output"}:         OtherProgram,
	{Pkg: "os/exec", Recv: "Cmd", Name: "CombinedOutput"}: OtherProgram,
	{Pkg: "os/exec", Recv: "Cmd", Name: "Wait"}:           OtherProgram,

	{Pkg: "net/smtp", Name: "SendMail"}:                        Network,
	{Pkg: "net", Name: "Dial"}:                                 Network,
	{Pkg: "net", Name: "DialTimeout"}:                          Network,
	{Pkg: "net", Recv: "Dialer", Name: "DialContext"}:          Network,
	{Pkg: "net/http", Recv: "RoundTripper", Name: "RoundTrip"}: Network,
	{Pkg: "net/http", Recv: "Transport", Name: "RoundTrip"}:    Network,

	{Pkg: "net/http", Recv: "ResponseWriter", Name: "Write"}:       Answer,
	{Pkg: "net/http", Recv: "ResponseWriter", Name: "WriteHeader"}: Answer,
	{Pkg: "net/http", Name: "Error"}:                               Answer,
	{Pkg: "net/http", Name: "Redirect"}:                            Answer,

	{Pkg: "os", Name: "WriteFile"}:  File,
	{Pkg: "os", Name: "Create"}:     File,
	{Pkg: "os", Name: "Remove"}:     File,
	{Pkg: "os", Name: "RemoveAll"}:  File,
	{Pkg: "os", Name: "Rename"}:     File,
	{Pkg: "os", Name: "Truncate"}:   File,
	{Pkg: "os", Name: "Mkdir"}:      File,
	{Pkg: "os", Name: "Symlink"}:    File,
	{Pkg: "os", Name: "CreateTemp"}: File,

	{Pkg: "os", Recv: "File", Name: "Write"}:       File,
	{Pkg: "os", Recv: "File", Name: "WriteString"}: File,
	{Pkg: "os", Recv: "File", Name: "Truncate"}:    File,
}

// webAnswers are the methods by which the context of a web framework answers.
var webAnswers = map[string]bool{
	"JSON": true, "String": true, "HTML": true, "XML": true, "Redirect": true, "AbortWithStatusJSON": true, "SendString": true,
	"SendStatus": true, "NoContent": true, "IndentedJSON": true, "Data": true, "Blob": true,
}

// EffectOf returns what a function of the standard library, or of a library that many use, does.
func EffectOf(f gormapi.Func) EffectKind {
	if kind := effects[f]; kind != 0 {
		return kind
	}
	switch {
	case f.Pkg == "net/http" && (f.Recv == "" || f.Recv == "Client"):
		switch f.Name {
		case "Get", "Post", "PostForm", "Head", "Do":
			return Network
		}
	case strings.HasPrefix(f.Pkg, "github.com/go-resty/resty") && f.Recv == "Request":
		switch f.Name {
		case "Get", "Post", "Put", "Patch", "Delete", "Head", "Execute", "Send":
			return Network
		}
	case f.Pkg == "google.golang.org/grpc" && (f.Recv == "ClientConn" || f.Recv == "ClientConnInterface") &&
		(f.Name == "Invoke" || f.Name == "NewStream"):
		return Network
	case (strings.HasPrefix(f.Pkg, "github.com/gin-gonic/gin") || strings.HasPrefix(f.Pkg, "github.com/labstack/echo") ||
		strings.HasPrefix(f.Pkg, "github.com/gofiber/fiber")) && (f.Recv == "Context" || f.Recv == "Ctx") && webAnswers[f.Name]:
		return Answer
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
func (p *Package) effectsOf(fn *ssa.Function) (found []Effect) {
	for _, part := range p.RunBy(fn) {
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
func (p *Package) EffectsAt(instr ssa.Instruction) []Effect {
	switch instr := instr.(type) {
	case *ssa.UnOp:
		if instr.Op.String() == "<-" {
			return []Effect{{Kind: Wait, What: "a receive"}}
		}
	case *ssa.Select:
		if instr.Blocking {
			return []Effect{{Kind: Wait, What: "a select"}}
		}
	case *ssa.Go:
		return nil
	case ssa.CallInstruction:
		return p.effectsOfCall(instr)
	}
	return nil
}

func (p *Package) effectsOfCall(call ssa.CallInstruction) []Effect {
	name := calls.Name(call)
	if kind := EffectOf(name); kind != 0 {
		return []Effect{{Kind: kind, What: Show(name)}}
	}
	if kind := answersBy(call); kind != 0 {
		return []Effect{{Kind: kind, What: Show(name)}}
	}
	known := p.SummaryOf(call)
	if known == nil {
		return nil
	}
	var found []Effect
	for _, e := range known.Does {
		if e.Kind == Wait && calls.Callee(call).Pkg() != p.Pass.Pkg {
			continue // what other packages wait for is their own affair: a pool, a limiter
		}
		e.What = name.Name + ", which calls " + e.What
		found = append(found, e)
	}
	return found
}

// answersBy returns Answer of a call that writes into an http.ResponseWriter: fmt.Fprintf(w, …), json.NewEncoder(w).
func answersBy(call ssa.CallInstruction) EffectKind {
	name := calls.Name(call)
	if name.Pkg != "fmt" && name.Pkg != "io" && name.Pkg != "encoding/json" || len(call.Common().Args) == 0 {
		return 0
	}
	for _, arg := range call.Common().Args {
		if converted, ok := arg.(*ssa.ChangeInterface); ok && gormapi.Is(converted.X.Type(), "net/http", "ResponseWriter") {
			return Answer
		}
	}
	return 0
}

func appendEffect(found []Effect, e Effect) []Effect {
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
	if !callsOut(pass.Pkg) || trusted(gormapi.PathOf(pass.Pkg)) {
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
				pass.ExportObjectFact(object, &Summary{Does: found})
				if promised == nil {
					promised = promises(pass.Pkg.Scope())
				}
				for _, method := range promised[object.Name()] {
					if keeps(object, method) {
						pass.ExportObjectFact(method, &Summary{Does: found})
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
func effectsIn(info *types.Info, body *ast.BlockStmt) (found []Effect) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.GoStmt:
			return false
		case *ast.CallExpr:
			if fn, ok := typeutil.Callee(info, n).(*types.Func); ok {
				name := gormapi.NameOf(fn)
				if kind := EffectOf(name); kind == Network || kind == File || kind == Sleep {
					found = appendEffect(found, Effect{Kind: kind, What: Show(name), Depth: 1})
				}
			}
		}
		return true
	})
	return found
}
