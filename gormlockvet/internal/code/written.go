package code

import (
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/models"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// ModelWritten returns the model whose rows a statement writes, nil where it writes none or has no tags.
func (p *Package) ModelWritten(s Statement) *models.Model {
	if s.Role != gormapi.Writes && s.Role != gormapi.FindsOrMakes {
		return nil
	}
	for _, t := range p.TypesOf(s) {
		if m := models.OfType(t); m != nil {
			return m
		}
	}
	return nil
}

// TypesOf returns the types of the structs that a statement is about: of its model, of what it is given, of gorm.G.
func (p *Package) TypesOf(s Statement) (all []types.Type) {
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
		for _, c := range s.On {
			for _, link := range c.Links {
				if fn := link.Call.StaticCallee(); fn != nil && calls.Name(link).Name == "G" && len(fn.TypeArgs()) == 1 {
					all = append(all, fn.TypeArgs()[0])
				}
			}
		}
		return all
	}
	for _, c := range s.On {
		for _, link := range c.Links {
			if calls.Name(link).Name == "Model" {
				all = append(all, values.Bare(calls.Args(link)[0]).Type())
			}
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

// Struct returns the variable that a pointer to a struct points to, as an argument of a statement. An element, or a copy
// of one that a loop makes, is the slice it is of.
func (p *Package) Struct(v ssa.Value) (Origin, bool) {
	v = values.Bare(v)
	if models.NamedOf(v.Type()) == nil {
		return Origin{}, false
	}
	if slice, ok := p.sliceOf(v); ok {
		return slice, true
	}
	return p.Origin(v)
}

// sliceOf returns where the slice comes from that an address is an element of, or a copy of one.
func (p *Package) sliceOf(addr ssa.Value) (Origin, bool) {
	switch at := addr.(type) {
	case *ssa.IndexAddr:
		return p.Origin(at.X)
	case *ssa.FreeVar:
		if bound := p.binding(at); bound != nil {
			return p.sliceOf(bound)
		}
	case *ssa.Alloc:
		if stored := p.storesTo(at); len(stored) == 1 {
			if load, ok := stored[0].(*ssa.UnOp); ok {
				if element, ok := load.X.(*ssa.IndexAddr); ok {
					return p.sliceOf(element)
				}
			}
		}
	}
	return Origin{}, false
}
