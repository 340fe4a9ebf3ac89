package code

import (
	"go/types"

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
