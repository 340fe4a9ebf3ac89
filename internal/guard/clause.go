package guard

import (
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
)

// Clause is a clause that says what a statement asks about versions and fences.
type Clause struct {
	change func(*Intent)
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

// ModifyStatement adds what the clause asks to the statement.
func (c Clause) ModifyStatement(stmt *gorm.Statement) {
	switch {
	case c.err != nil:
		fault.Add(stmt.DB, c.err)
		return
	case c.change == nil:
		fault.Add(stmt.DB, fmt.Errorf("%w: a clause about versions or fences that is not from a function of gormlock", fault.ErrOption))
		return
	}
	if install.Of(stmt.DB) == nil {
		fault.Add(stmt.DB, fault.ErrNotInstalled)
		return
	}
	if statement.InAssociationOperation() {
		fault.Add(stmt.DB, errAssociationOperation)
		return
	}
	var intent Intent
	if old := IntentOf(stmt); old != nil {
		if intent = *old; old == usedBefore(stmt).intentLeft() {
			intent = Intent{tokens: old.tokens}
		}
		mark.Remove(stmt, func(m mark.Mark) bool { return m == mark.Mark(askedHere{old}) }) // there is one for all clauses together
	}
	if err := intent.refuseSecond(c.change); err != nil {
		fault.Add(stmt.DB, err)
		return
	}
	stmt.Clauses[VersionIntentClause] = clause.Clause{Expression: &intent}
	mark.Put(stmt, askedHere{&intent})
}

// refuseSecond changes i, and returns the error of a clause that takes the place of another one which compares something else.
func (i *Intent) refuseSecond(change func(*Intent)) error {
	first := *i
	change(i)
	switch {
	case first.Expects && !sameVersion(first.Expected, i.Expected):
		return fmt.Errorf("gormlock: a statement is to find its row at version %v and at version %v: name one, by ExpectVersion or IfMatch", first.Expected, i.Expected)
	case first.Unchanged != nil && !first.Unchanged.same(i.Unchanged):
		return errors.New("gormlock: a statement has two clauses IfUnchanged: name all columns in one")
	}
	return nil
}

// The clauses that callers know by the names of the root package, where their docs are.

// IgnoreVersion lets a statement write without a check.
func IgnoreVersion() Clause {
	return Clause{change: func(i *Intent) { i.Ignore = true }}
}

// ExpectVersion lets a statement write only rows at this version.
func ExpectVersion(version any) Clause {
	return Clause{change: func(i *Intent) { i.Expects, i.Expected = true, version }}
}

// PreserveVersion lets a statement leave the version as it is.
func PreserveVersion() Clause {
	return Clause{change: func(i *Intent) { i.preserve = true }}
}

// Touch lets a statement move the version although it sets nothing else.
func Touch() Clause {
	return Clause{change: func(i *Intent) { i.touch = true }}
}

// Tentatively allows a touch to find no row. Then nothing is compared and nothing is refused.
func Tentatively() Clause {
	return Clause{change: func(i *Intent) { i.tentative = true }}
}

// Fence guards a statement by a token.
func Fence(token fence.Token) Clause {
	return Clause{change: func(i *Intent) { i.tokens = append(i.tokens[:len(i.tokens):len(i.tokens)], token) }}
}

// IgnoreFence lets a statement write without a token.
func IgnoreFence() Clause {
	return Clause{change: func(i *Intent) { i.ignoreFence = true }}
}
