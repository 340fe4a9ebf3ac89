// Package statements finds what a call sends to the database, and which locks and clauses the db it runs on carries.
package statements

import (
	"go/types"
	"iter"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/models"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Statement is a call that sends something to the database, or begins a transaction there.
type Statement struct {
	Call ssa.CallInstruction
	Name gormapi.Func
	Role gormapi.Role
	On   []flow.Chain // the db it runs on, with what was built on it
}

// Ours reports whether the statement is a function of gormlock, which is given its db as an argument.
func (s Statement) Ours() bool { return s.Name.Pkg != gormapi.Gorm }

// Links yields the methods of *gorm.DB that built the db it runs on.
func (s Statement) Links() iter.Seq[*ssa.Call] {
	return func(yield func(*ssa.Call) bool) {
		for _, c := range s.On {
			for _, link := range c.Links {
				if !yield(link) {
					return
				}
			}
		}
	}
}

// Types returns the types of the structs that the statement is about: of its model, of what it is given, of gorm.G.
func (s Statement) Types() (all []types.Type) {
	args := calls.Args(s.Call)
	switch {
	case s.Ours() && s.Name.Name == "Claim":
		if instance := s.Call.Common().StaticCallee(); instance != nil && len(instance.TypeArgs()) == 1 {
			all = append(all, instance.TypeArgs()[0])
		}
	case s.Ours():
		if len(args) > 1 {
			all = append(all, values.Bare(args[1]).Type())
		}
	case s.Name.Recv == "Association":
		return nil
	case gormapi.GenericRole(s.Name) != gormapi.Other:
		for link := range s.Links() {
			if fn := link.Call.StaticCallee(); fn != nil && calls.Name(link).Name == "G" && len(fn.TypeArgs()) == 1 {
				all = append(all, fn.TypeArgs()[0])
			}
		}
		return all
	}
	for link := range s.Links() {
		if calls.Name(link).Name == "Model" {
			all = append(all, values.Bare(calls.Args(link)[0]).Type())
		}
	}
	switch s.Name.Name {
	case "Create", "CreateInBatches", "Save", "Updates", "UpdateColumns", "Delete", "FirstOrCreate",
		"First", "Take", "Last", "Find", "FindInBatches", "FirstOrInit", "Scan":
		if len(args) > 0 {
			all = append(all, values.Bare(args[0]).Type())
		}
	}
	return all
}

// Written returns the model whose rows the statement writes, nil where it writes none or has no tags.
func (s Statement) Written() *models.Model {
	if s.Role != gormapi.Writes && s.Role != gormapi.FindsOrMakes {
		return nil
	}
	for _, t := range s.Types() {
		if m := models.OfType(t); m != nil {
			return m
		}
	}
	return nil
}

// NewDB reports whether the configuration of Session is a literal that asks for a new statement.
func NewDB(config ssa.Value) bool { return sets(config, "NewDB") }

// IsDry reports whether the statement is only built, by a Session with DryRun.
func (s *Statement) IsDry() bool {
	return len(s.On) > 0 && !slices.ContainsFunc(s.On, func(chain flow.Chain) bool {
		return !slices.ContainsFunc(chain.Links, func(link *ssa.Call) bool {
			args := calls.Args(link)
			return calls.Name(link).Name == "Session" && len(args) == 1 && sets(args[0], "DryRun")
		})
	})
}

// sets reports whether the configuration of Session is a literal in which an option is true.
func sets(config ssa.Value, option string) bool {
	alloc, ok := config.(*ssa.Alloc)
	if !ok {
		return false
	}
	for _, use := range *alloc.Referrers() {
		at, ok := use.(*ssa.FieldAddr)
		if !ok || values.Field(at) != option {
			continue
		}
		for _, use := range *at.Referrers() {
			if store, ok := use.(*ssa.Store); ok && values.True(store.Val) {
				return true
			}
		}
	}
	return false
}
