// Package gormapi knows the functions of GORM and of gormlock by name: what builds a statement, what runs one, what
// takes a lock, what hands a function a transaction. It imports neither of them.
package gormapi

import (
	"go/types"
	"strings"
)

// The import paths that the names below belong to.
const (
	Gorm        = "gorm.io/gorm"
	Clause      = "gorm.io/gorm/clause"
	Gormlock    = "github.com/gormlock/gormlock"
	SessionLock = Gormlock + "/sessionlock"
	Lease       = Gormlock + "/lease"
	Advisory    = Gormlock + "/advisory"
	Work        = Gormlock + "/work"
	PgxLock     = Gormlock + "/pgxlock"
)

// Func names a function or a method. Recv is the name of the receiver's type, without pointer and type parameters.
type Func struct{ Pkg, Recv, Name string }

// NameOf returns the name of fn. Copies of a package in a vendor folder count as the package.
func NameOf(fn *types.Func) Func {
	if fn == nil || fn.Pkg() == nil {
		return Func{}
	}
	name := Func{Pkg: PathOf(fn.Pkg()), Name: fn.Name()}
	if recv := fn.Signature().Recv(); recv != nil {
		if named := NamedOf(recv.Type()); named != nil {
			name.Recv = named.Obj().Name()
		}
	}
	return name
}

// Show returns the function as a reader knows it.
func (f Func) Show() string {
	name := f.Name
	if f.Recv != "" {
		name = f.Recv + "." + name
	}
	return f.Pkg[strings.LastIndexByte(f.Pkg, '/')+1:] + "." + name
}

// PathOf returns the import path of a package, without a vendor folder before it.
func PathOf(pkg *types.Package) string {
	path := pkg.Path()
	if _, vendored, ok := strings.Cut(path, "/vendor/"); ok {
		return vendored
	}
	return path
}

// NamedOf returns the named type behind pointers and aliases, nil where there is none.
func NamedOf(t types.Type) *types.Named {
	if t == nil {
		return nil
	}
	t = types.Unalias(t)
	if pointer, ok := t.(*types.Pointer); ok {
		t = types.Unalias(pointer.Elem())
	}
	named, _ := t.(*types.Named)
	return named
}

// Is reports whether t, or what it points to, is the named type.
func Is(t types.Type, pkg, name string) bool {
	named := NamedOf(t)
	return named != nil && named.Obj().Pkg() != nil && named.Obj().Name() == name && PathOf(named.Obj().Pkg()) == pkg
}

// IsDB reports whether t is *gorm.DB.
func IsDB(t types.Type) bool {
	pointer, ok := types.Unalias(t).(*types.Pointer)
	return ok && Is(pointer, Gorm, "DB")
}

// IsContext reports whether t is context.Context.
func IsContext(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && Is(named, "context", "Context")
}

// IsOurs reports whether t is declared in a package of gormlock.
func IsOurs(t types.Type) bool {
	named := NamedOf(t)
	return named != nil && named.Obj().Pkg() != nil && OurPackage(PathOf(named.Obj().Pkg()))
}

// OurPackage reports whether path is one of the packages that users import. Examples, tests and tools of the repository
// are programs like any other.
func OurPackage(path string) bool {
	rest, ok := strings.CutPrefix(path, Gormlock)
	if !ok {
		return false
	}
	switch strings.Split(strings.TrimPrefix(rest, "/"), "/")[0] {
	case "", "advisory", "lockkey", "fence", "sessionlock", "lease", "work", "etag", "pgxlock", "observe", "hooks", "inspect":
		return true
	}
	return false
}

// Role says what a method of *gorm.DB does.
type Role uint8

// The roles. Reads, Writes and RunsText send a statement; FindsOrMakes does either.
const (
	Other Role = iota
	Builds
	Reads
	Writes
	FindsOrMakes
	RunsText
	Begins
	Ends
)

var dbMethods = map[string]Role{
	"Model": Builds, "Clauses": Builds, "Table": Builds, "Distinct": Builds, "Select": Builds, "Omit": Builds,
	"MapColumns": Builds, "Where": Builds, "Not": Builds, "Or": Builds, "Joins": Builds, "InnerJoins": Builds,
	"Group": Builds, "Having": Builds, "Order": Builds, "Limit": Builds, "Offset": Builds, "Scopes": Builds,
	"Preload": Builds, "Attrs": Builds, "Assign": Builds, "Unscoped": Builds, "Raw": Builds, "Session": Builds,
	"WithContext": Builds, "Debug": Builds, "Set": Builds, "InstanceSet": Builds,

	"First": Reads, "Take": Reads, "Last": Reads, "Find": Reads, "FindInBatches": Reads, "FirstOrInit": Reads,
	"Count": Reads, "Row": Reads, "Rows": Reads, "Scan": Reads, "Pluck": Reads,

	"Create": Writes, "CreateInBatches": Writes, "Save": Writes, "Update": Writes, "Updates": Writes,
	"UpdateColumn": Writes, "UpdateColumns": Writes, "Delete": Writes,

	"FirstOrCreate": FindsOrMakes,
	"Exec":          RunsText,
	"Transaction":   Begins, "Begin": Begins, "Connection": Begins,
	"Commit": Ends, "Rollback": Ends, "RollbackTo": Ends, "SavePoint": Other,
}

// Runs reports whether a call in this role sends a statement.
func (r Role) Runs() bool { return r == Reads || r == Writes || r == FindsOrMakes || r == RunsText }

// MethodRole returns what a method of *gorm.DB does.
func MethodRole(f Func) Role {
	if f.Pkg != Gorm || f.Recv != "DB" {
		return Other
	}
	return dbMethods[f.Name]
}

var genericMethods = map[string]Role{
	"First": Reads, "Last": Reads, "Take": Reads, "Find": Reads, "FindInBatches": Reads, "Scan": Reads, "Row": Reads,
	"Rows": Reads, "Count": Reads,
	"Create": Writes, "CreateInBatches": Writes, "Update": Writes, "Updates": Writes, "Delete": Writes,
	"Exec": RunsText,
}

// GenericRole returns what a method of the interfaces behind gorm.G does.
func GenericRole(f Func) Role {
	if f.Pkg != Gorm || !strings.HasSuffix(f.Recv, "Interface") && f.Recv != "Interface" {
		return Other
	}
	if role, ok := genericMethods[f.Name]; ok {
		return role
	}
	return Builds
}

var associationMethods = map[string]Role{
	"Find": Reads, "Count": Reads, "Append": Writes, "Replace": Writes, "Delete": Writes, "Clear": Writes,
}

// AssociationRole returns what a method of *gorm.Association does.
func AssociationRole(f Func) Role {
	if f.Pkg != Gorm || f.Recv != "Association" {
		return Other
	}
	return associationMethods[f.Name]
}
