package around

import (
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/sqltext"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

var sqlMethods = map[string]bool{
	"Exec": true, "ExecContext": true, "Query": true, "QueryContext": true, "QueryRow": true, "QueryRowContext": true,
	"Prepare": true, "PrepareContext": true, "Queue": true,
}

// textOf returns the SQL that a call sends, with sqltext.Unknown for what the compiler does not know of it.
func textOf(variables *flow.Variables, call ssa.CallInstruction) (string, bool) {
	name := calls.Name(call)
	ofGorm := name.Pkg == gormapi.Gorm && (name.Name == "Exec" || name.Name == "Raw") && name.Recv != ""
	ofSQL := (name.Pkg == "database/sql" || strings.HasPrefix(name.Pkg, "github.com/jackc/pgx/") || strings.HasPrefix(name.Pkg, "github.com/jmoiron/sqlx")) &&
		sqlMethods[name.Name]
	if !ofGorm && !ofSQL {
		return "", false
	}
	for _, arg := range calls.Args(call) {
		if isText(arg) {
			text := text(variables, arg, 0)
			return text, strings.Trim(text, sqltext.Unknown) != ""
		}
	}
	return "", false
}

func isText(v ssa.Value) bool { return v.Type().Underlying().String() == "string" }

// text puts a text together as far as it is known.
func text(variables *flow.Variables, v ssa.Value, depth int) string {
	const deepest = 12
	if known, ok := values.String(v); ok {
		return known
	}
	if depth > deepest {
		return sqltext.Unknown
	}
	if assigned, ok := variables.Assigned(v); ok {
		return text(variables, assigned, depth+1)
	}
	switch v := v.(type) {
	case *ssa.BinOp:
		if v.Op == token.ADD {
			return text(variables, v.X, depth+1) + text(variables, v.Y, depth+1)
		}
	case *ssa.Call:
		name := calls.Name(v)
		if name.Pkg == "fmt" && name.Name == "Sprintf" {
			return sprintf(variables, v, depth)
		}
		if name.Pkg == "strconv" && (name.Name == "Itoa" || strings.HasPrefix(name.Name, "Format")) {
			return aNumber
		}
		if name.Pkg == "strings" && strings.HasPrefix(name.Name, "Trim") {
			return text(variables, v.Call.Args[0], depth+1)
		}
		if returned := returnedBy(v); returned != nil {
			return text(variables, returned, depth+1)
		}
		if parts, ok := joined(name, v); ok {
			var all []string
			for _, part := range parts {
				all = append(all, text(variables, part, depth+1))
			}
			separator, _ := values.String(v.Call.Args[1])
			return strings.Join(all, separator)
		}
	}
	return sqltext.Unknown
}

// joined returns the parts that strings.Join puts together.
func joined(name gormapi.Func, call *ssa.Call) ([]ssa.Value, bool) {
	if name.Pkg != "strings" || name.Name != "Join" {
		return nil, false
	}
	return values.Variadic(call.Call.Args[0])
}

var formatVerb = regexp.MustCompile(`%[-+# 0-9.*\[\]]*[a-zA-Z]`)

// sprintf fills in the arguments that are known.
func sprintf(variables *flow.Variables, call *ssa.Call, depth int) string {
	format, ok := values.String(call.Call.Args[0])
	if !ok {
		return sqltext.Unknown
	}
	args, _ := values.Variadic(call.Call.Args[1])
	i := -1
	return strings.ReplaceAll(formatVerb.ReplaceAllStringFunc(strings.ReplaceAll(format, "%%", "\x01"), func(verb string) string {
		if i++; i < len(args) {
			arg := values.Bare(args[i])
			if known, ok := arg.(*ssa.Const); ok && known.Value != nil && known.Value.Kind() != constant.String {
				return known.Value.String()
			}
			if given, ok := args[i].(*ssa.MakeInterface); ok && isNumber(given.X.Type(), strings.HasSuffix(verb, "d")) {
				return aNumber
			}
			return text(variables, arg, depth+1)
		}
		return sqltext.Unknown
	}), "\x01", "%")
}

// aNumber stands in a text for a number, or true or false, that the compiler does not know: whatever it is, it is no more than a value.
const aNumber = "0"

// isNumber reports whether a value is written as a number, or as true or false. A type that has a name may write itself, but not as %d.
func isNumber(t types.Type, asNumber bool) bool {
	basic, is := t.Underlying().(*types.Basic)
	if _, named := t.(*types.Named); !is || named && !asNumber {
		return false
	}
	return basic.Info()&(types.IsNumeric|types.IsBoolean) != 0
}

// returnedBy returns what the function of this package returns that a call names, if it has one result and one return.
// Of functions of other packages there are no bodies.
func returnedBy(call *ssa.Call) ssa.Value {
	fn := call.Call.StaticCallee()
	if fn == nil || fn.Pkg == nil {
		return nil
	}
	return calls.OnlyReturn(calls.Body(fn))
}
