// Package golangci makes gormlockvet a plugin of golangci-lint, by its module plugin system. A file .custom-gcl.yml names
// it, and golangci-lint custom builds a linter that has it:
//
//	version: v2.15.0
//	plugins:
//	  - module: github.com/gormlock/gormlock/gormlockvet
//	    import: github.com/gormlock/gormlock/gormlockvet/golangci
//	    version: latest
//
// The configuration of the linter then switches it on:
//
//	linters:
//	  enable: [gormlockvet]
//	  settings:
//	    custom:
//	      gormlockvet:
//	        type: module
//	        settings:
//	          disable: [held]
//	          testfiles: false
package golangci

import (
	"fmt"
	"slices"
	"strings"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/gormlock/gormlock/gormlockvet"
)

func init() {
	register.Plugin("gormlockvet", New)
}

// Settings are what the configuration of golangci-lint can say.
type Settings struct {
	Disable   []string `json:"disable"`   // findings that are left out
	TestFiles bool     `json:"testfiles"` // report findings in files that end in _test.go too
}

type plugin struct{ settings Settings }

// New returns the plugin. It fails where the settings name what is not there.
func New(conf any) (register.LinterPlugin, error) {
	settings, err := register.DecodeSettings[Settings](conf)
	if err != nil {
		return nil, fmt.Errorf("gormlockvet: %w", err)
	}
	for _, name := range settings.Disable {
		if !slices.ContainsFunc(gormlockvet.Analyzers(), func(a *analysis.Analyzer) bool { return finds(a) == name }) {
			return nil, fmt.Errorf("gormlockvet: there is no finding %q to disable", name)
		}
	}
	return plugin{settings}, nil
}

// finds is the name of what an analyzer finds.
func finds(a *analysis.Analyzer) string { return strings.TrimPrefix(a.Name, "gormlock") }

// BuildAnalyzers returns the analyzers that are not disabled.
func (p plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	gormlockvet.IncludeTests(p.settings.TestFiles)
	return slices.DeleteFunc(gormlockvet.Analyzers(), func(a *analysis.Analyzer) bool {
		return slices.Contains(p.settings.Disable, finds(a))
	}), nil
}

// GetLoadMode asks for types: the analyzers need them.
func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
