package guard

import (
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
)

// Clause is a clause about versions and fences that a statement carries.
type Clause struct {
	change func(*asked.Intent)
	err    error
}

// Name is empty: the clause itself writes nothing.
func (Clause) Name() string { return "" }

// Build writes nothing.
func (Clause) Build(clause.Builder) {}

// MergeClause merges nothing: ModifyStatement does it.
func (Clause) MergeClause(*clause.Clause) {}

// errAssociationOperation is the error of a clause that GORM would drop for some relations.
var errAssociationOperation = errors.New("gormlock: clauses about versions and fences do not reach the rows of an association that gorm.G sets: update its model, or put the token into the context")

// ModifyStatement adds what the clause asks for to the statement.
func (c Clause) ModifyStatement(stmt *gorm.Statement) {
	switch {
	case c.err != nil:
		mark.Fail(stmt, c.err)
		return
	case c.change == nil:
		mark.Fail(stmt, fmt.Errorf("%w: a clause about versions or fences that is not from a function of gormlock", fault.ErrOption))
		return
	}
	if install.Of(stmt.DB) == nil {
		mark.Fail(stmt, fault.ErrNotInstalled)
		return
	}
	if statement.InAssociationOperation() {
		mark.Fail(stmt, errAssociationOperation)
		return
	}
	before := asked.Of(stmt)
	now := &asked.Intent{}
	switch {
	case before == nil:
	case before == usedBefore(stmt).intentLeft():
		now.Tokens = before.Tokens
	default:
		now = before
	}
	now, err := now.With(c.change)
	if err != nil {
		mark.Fail(stmt, err)
		return
	}
	asked.Put(stmt, now, before)
}

// The clauses below have the same names in the root package, where their documentation is.

// IgnoreVersion lets a statement write without a check.
func IgnoreVersion() Clause {
	return Clause{change: func(i *asked.Intent) { i.Ignore = true }}
}

// ExpectVersion lets a statement write only rows at this version.
func ExpectVersion(version any) Clause {
	return Clause{change: func(i *asked.Intent) { i.Expects, i.Expected = true, version }}
}

// PreserveVersion lets a statement leave the version as it is.
func PreserveVersion() Clause {
	return Clause{change: func(i *asked.Intent) { i.Preserve = true }}
}

// Touch makes a statement move the version although it sets nothing else.
func Touch() Clause {
	return Clause{change: func(i *asked.Intent) { i.Touch = true }}
}

// Tentatively allows a touch to find no row. Then nothing is compared and nothing is refused.
func Tentatively() Clause {
	return Clause{change: func(i *asked.Intent) { i.Tentative = true }}
}

// Fence guards a statement with a token.
func Fence(token fence.Token) Clause {
	return Clause{change: func(i *asked.Intent) { i.Tokens = append(i.Tokens[:len(i.Tokens):len(i.Tokens)], token) }}
}

// IgnoreFence lets a statement write without a token.
func IgnoreFence() Clause {
	return Clause{change: func(i *asked.Intent) { i.IgnoreFence = true }}
}

// IfUnchanged lets a statement write only rows whose columns have the same values as in before.
func IfUnchanged(before any, names []string) Clause {
	unchanged, err := asked.IfUnchanged(before, names)
	return Clause{change: func(i *asked.Intent) { i.Unchanged = unchanged }, err: err}
}

// ExpectTags lets a statement write only rows that have one of these entity tags.
func ExpectTags(list []string) Clause {
	return Clause{change: func(i *asked.Intent) { i.Expects, i.Expected = true, &asked.Tags{List: list} }}
}

// ExpectRow lets a statement write a row at any version, and makes it fail if there is no row.
func ExpectRow() Clause {
	return Clause{change: func(i *asked.Intent) { i.Expects, i.Expected = true, &asked.Tags{Any: true} }}
}

// Merged limits an update of the merged struct to the columns that SaveMerged writes, the update times, and what a hook changes. The row already
// has the rest, perhaps in a form that the struct cannot hold.
func Merged(merged asked.Merged) Clause {
	return Clause{change: func(i *asked.Intent) { i.Merged = &merged }}
}
