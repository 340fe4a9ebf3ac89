// Package asked holds what the clauses of one statement ask about versions and fences: Fence, IgnoreFence, IgnoreVersion, ExpectVersion,
// PreserveVersion, IfUnchanged, IfMatch, and what Touch and SaveMerged add. Package guard acts on it.
package asked

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Intent is what the clauses of one statement ask. It is never changed, only replaced, because a statement shares it with its clones.
type Intent struct {
	Ignore    bool
	Expects   bool
	Expected  any // a version, or *Tags
	Touch     bool
	Tentative bool // for a touch: finding no row is an answer, not a conflict
	Preserve  bool
	Unchanged *Unchanged // the columns to compare; nil: none
	Merged    *Merged    // the struct is merged with its row; nil: all columns are written

	Tokens      []fence.Token
	IgnoreFence bool
}

// Merged is the row with which a struct was merged, and the columns of the struct that must be written.
type Merged struct {
	Mine   any // the struct
	Row    reflect.Value
	Writes map[string]bool
	Before func(*gorm.Statement) error // after the hooks it may refuse the update
}

// ClauseName is the name under which a statement carries what its clauses ask.
const ClauseName = "gormlock:versions"

// Of returns what the clauses of the statement ask, nil if they ask nothing.
func Of(stmt *gorm.Statement) *Intent {
	if len(stmt.Clauses) == 0 {
		return nil
	}
	c, ok := stmt.Clauses[ClauseName]
	if !ok {
		return nil
	}
	intent, _ := c.Expression.(*Intent)
	if intent.Merges() && !statement.SamePointer(stmt.Dest, intent.Merged.Mine) { // a statement of a hook, which has the clauses of the merge too
		other := *intent
		other.Merged = nil
		return &other
	}
	return intent
}

// Build writes nothing. It makes Intent a clause, so that the statement can carry it.
func (*Intent) Build(clause.Builder) {}

// Ignores reports whether versions are not compared.
func (i *Intent) Ignores() bool { return i != nil && i.Ignore }

// Touches reports whether the statement only moves versions.
func (i *Intent) Touches() bool { return i != nil && i.Touch }

// IsTentative reports whether a touch may find no row.
func (i *Intent) IsTentative() bool { return i != nil && i.Tentative }

// Preserves reports whether the version stays as it is.
func (i *Intent) Preserves() bool { return i != nil && i.Preserve }

// Merges reports whether the statement merges its struct with the row.
func (i *Intent) Merges() bool { return i != nil && i.Merged != nil }

// Columns are the columns to compare; nil: none.
func (i *Intent) Columns() *Unchanged {
	if i == nil {
		return nil
	}
	return i.Unchanged
}

// Compares reports whether clauses set a condition on the row.
func (i *Intent) Compares() bool { return i != nil && (i.Expects || i.Unchanged != nil) }

// AsksVersion reports whether clauses say something about versions, or columns to compare.
func (i *Intent) AsksVersion() bool {
	return i != nil && (i.Ignore || i.Expects || i.Touch || i.Preserve || i.Unchanged != nil)
}

// AsksFence reports whether clauses say something about a fence.
func (i *Intent) AsksFence() bool { return i != nil && (i.IgnoreFence || len(i.Tokens) > 0) }

// OnlyIgnoresFence reports whether IgnoreFence is all that the statement says.
func (i *Intent) OnlyIgnoresFence() bool {
	return i != nil && i.IgnoreFence && len(i.Tokens) == 0 && !i.Compares() && !i.Ignore && !i.Touch && !i.Preserve && !i.Merges()
}

// NamedTokens are the tokens of Fence clauses, the last one for each key.
func (i *Intent) NamedTokens() []fence.Token {
	if i == nil {
		return nil
	}
	var named []fence.Token
	for n, token := range i.Tokens {
		last := true
		for _, later := range i.Tokens[n+1:] {
			last = last && !later.SameKey(token)
		}
		if last {
			named = append(named, token)
		}
	}
	return named
}

// On finds the columns in the model that the clauses name.
func (i *Intent) On(m *model.Model) (*Intent, error) {
	if i == nil {
		return nil, nil
	}
	if m.Column == nil && (i.Ignore || i.Expects || i.Touch || i.Preserve) {
		return nil, fmt.Errorf("gormlock: %s has no version field to expect, ignore, touch or preserve: %w", m.Schema.Name, fault.Because(fault.ErrVersionMissing))
	}
	if m.Fence == nil && i.AsksFence() {
		return nil, fmt.Errorf("%w: %s has no fence field to guard or ignore", fault.ErrFenceMissing, m.Schema.Name)
	}
	if i.IgnoreFence && len(i.Tokens) > 0 {
		return nil, fmt.Errorf("gormlock: %s: a statement cannot both ignore the fence and name a token", m.Schema.Name)
	}
	if i.Ignore && i.Expects {
		return nil, fmt.Errorf("gormlock: %s: a statement cannot both ignore the version and expect one", m.Schema.Name)
	}
	if i.Preserve && m.Column != nil && m.Column.IsSystem() {
		return nil, fmt.Errorf("gormlock: %s: xmin moves with every update and cannot be preserved", m.Schema.Name)
	}
	if i.Unchanged == nil {
		return i, nil
	}
	found := *i
	var err error
	found.Unchanged, err = i.Unchanged.of(m)
	return &found, err
}

// With returns i with the request of a further clause. If that clause would replace one that compares something else, it returns an error.
func (i *Intent) With(change func(*Intent)) (*Intent, error) {
	next := *i
	change(&next)
	switch {
	case i.Expects && !sameVersion(i.Expected, next.Expected):
		return nil, fmt.Errorf("gormlock: a statement is to find its row at version %v and at version %v: name one, by ExpectVersion or IfMatch", i.Expected, next.Expected)
	case i.Unchanged != nil && !i.Unchanged.same(next.Unchanged):
		return nil, errTwoUnchanged
	}
	return &next, nil
}
