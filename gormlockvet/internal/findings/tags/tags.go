// Package tags finds tags that gormlock refuses when it meets the model, and those that nobody reads.
package tags

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/gormlock/gormlock/gormlockvet/internal/code"
	"github.com/gormlock/gormlock/gormlockvet/internal/models"
)

// Analyzer is the finding.
var Analyzer = code.NewInModels("tags", "find wrong tags of gormlock\n\n"+
	"A wrong tag is an error when the model is first used. One that is misspelled, or stands where nobody looks, is\n"+
	"nothing at all: the model is written without a check.", run)

func run(pass *analysis.Pass, p *code.Package) {
	asModels := &gormModels{pkg: pass.Pkg, p: p}
	for _, file := range pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			literal, ok := spec.Type.(*ast.StructType)
			if !ok || !hasTags(literal) {
				return true
			}
			if object, ok := pass.TypesInfo.Defs[spec.Name].(*types.TypeName); ok {
				check(pass, p, asModels, object, literal)
			}
			return true
		})
	}
}

// hasTags is a quick look for anything like our tag, in the struct or by what it may embed.
func hasTags(s *ast.StructType) bool {
	for _, field := range s.Fields.List {
		if field.Tag != nil || len(field.Names) == 0 {
			return true
		}
	}
	return false
}

func check(pass *analysis.Pass, p *code.Package, asModels *gormModels, object *types.TypeName, literal *ast.StructType) {
	s, ok := object.Type().Underlying().(*types.Struct)
	if !ok {
		return
	}
	fields := map[*types.Var]*ast.Field{}
	for _, field := range literal.Fields.List {
		for _, name := range field.Names {
			if v, ok := pass.TypesInfo.Defs[name].(*types.Var); ok {
				fields[v] = field
			}
		}
		if len(field.Names) == 0 {
			for v := range s.Fields() {
				if v.Pos() >= field.Pos() && v.Pos() <= field.End() {
					fields[v] = field
				}
			}
		}
	}
	problems := models.NearMisses(s)
	if models.Mentions(s) {
		if m := models.Of(object.Name(), s, asModels.has(object)); m != nil {
			problems = append(problems, m.Problems...)
		}
	}
	for _, problem := range problems {
		field, own := fields[problem.Field]
		if !own {
			continue
		}
		text := problem.Text
		if !strings.HasPrefix(text, object.Name()) {
			text = object.Name() + "." + text
		}
		p.ReportFix(pass, field.Pos(), fix(field, problem.Fix), "%s", text)
	}
}

func fix(field *ast.Field, better *models.Fix) *analysis.SuggestedFix {
	if better == nil || field.Tag == nil || len(field.Names) > 1 || strings.Contains(better.Tag, "`") {
		return nil
	}
	return code.Replace(better.Text, field.Tag.Pos(), field.Tag.End(), "`"+better.Tag+"`")
}
