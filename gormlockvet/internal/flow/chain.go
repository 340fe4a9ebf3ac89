// Package flow follows the values of a package: where one comes from, through variables, function literals and the calls
// of other functions, and what has run when something else runs.
package flow

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// Chain is one way in which a value came to be: where it comes from, and the methods of *gorm.DB called on the way.
type Chain struct {
	Root  Origin
	Links []*ssa.Call
	Carry gormapi.Carry // put on by functions of which only a summary is known
}

// Kind says where a value comes from.
type Kind uint8

// The kinds. A Local is a variable, or the result of a call nothing is known of.
const (
	Local Kind = iota
	Param
	Global
	Opened // the result of gorm.Open
	Begun  // the result of Begin
)

// Origin is where a value comes from. Two values of one origin are the same value, or will be.
type Origin struct {
	Kind  Kind
	Fn    *ssa.Function // of a Param
	Index int           // of a Param; the receiver is 0
	Name  string        // of a Global: its package's path and its own name
	Path  string        // the fields read from it, each after a dot
	Value ssa.Value     // of a Local, or what was Opened or Begun
}

// More ways than these, or more steps to find them, are too many: a variable that is assigned to over and over, and
// captured, can have come to be in more ways than anybody can count.
const (
	mostChains = 8
	mostSteps  = 2000
)

// Type returns the type of a Local.
func (o Origin) Type() types.Type {
	t := o.Value.Type()
	if results, ok := t.(*types.Tuple); ok && o.Result() < results.Len() {
		return results.At(o.Result()).Type()
	}
	return t
}

// IsParam reports whether it is a parameter of fn itself, not a field of one.
func (o Origin) IsParam(fn *ssa.Function) bool { return o.Kind == Param && o.Fn == fn && o.Path == "" }

// Root returns where all chains begin, if that is one place.
func Root(chains []Chain) (Origin, bool) {
	if len(chains) == 0 {
		return Origin{}, false
	}
	for _, c := range chains[1:] {
		if c.Root != chains[0].Root {
			return Origin{}, false
		}
	}
	return chains[0].Root, true
}

func root(o Origin) []Chain { return []Chain{{Root: o}} }

// within returns the field of each.
func within(chains []Chain, field string) []Chain {
	if field == "*" {
		return chains
	}
	inner := make([]Chain, len(chains))
	for i, c := range chains {
		inner[i] = c
		inner[i].Root.Path += "." + field
	}
	return inner
}

func merged(all, more []Chain) []Chain {
	for _, c := range more {
		if !slices.ContainsFunc(all, func(have Chain) bool {
			return have.Root == c.Root && have.Carry == c.Carry && slices.Equal(have.Links, c.Links)
		}) {
			all = append(all, c)
		}
	}
	return all
}

func linked(chains []Chain, call *ssa.Call) []Chain {
	longer := make([]Chain, len(chains))
	for i, c := range chains {
		longer[i] = c
		longer[i].Links = append(slices.Clip(c.Links), call)
	}
	return longer
}

// splitResult takes apart which result of a call a path begins at, and the fields after it.
func splitResult(path string) (index int, fields string) {
	if rest, ok := strings.CutPrefix(path, "#"); ok && rest != "" {
		return int(rest[0] - '0'), rest[1:]
	}
	return 0, path
}

// ResultOf is the origin of what a call returns, where nothing is known of that.
func ResultOf(call *ssa.Call, index int) Origin {
	if index == 0 {
		return Origin{Value: call}
	}
	return Origin{Value: call, Path: "#" + string(rune('0'+index))}
}

// Result returns which result of a call a Local is.
func (o Origin) Result() int {
	if rest, ok := strings.CutPrefix(o.Path, "#"); ok && len(rest) == 1 {
		return int(rest[0] - '0')
	}
	return 0
}

// PlaceOf returns where fn has a value from, if all ways say the same.
func PlaceOf(fn *ssa.Function, chains []Chain) (at facts.Place, ok bool) {
	for i, c := range chains {
		var here facts.Place
		switch {
		case c.Root.Kind == Param && c.Root.Fn == fn:
			here = facts.Place{Param: c.Root.Index, Path: c.Root.Path}
		case c.Root.Kind == Global:
			here = facts.Place{Global: c.Root.Name, Path: c.Root.Path}
		default:
			return facts.Place{}, false
		}
		if i > 0 && here != at {
			return facts.Place{}, false
		}
		at = here
	}
	return at, len(chains) > 0
}
