package gormlock

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/fence"
)

// tokenOf picks the token that guards a statement: one that a clause names, else one that its context carries.
func (c *fenceColumn) tokenOf(stmt *gorm.Statement, intent *versionIntent) (fence.Token, error) {
	named, from := intent.namedTokens(), "Fence names"
	if len(named) == 0 {
		named, from = fence.FromContext(stmt.Context), "the context carries"
	}
	var token fence.Token
	fitting := 0
	for i := range named {
		if c.fits(named[i]) {
			token = named[i]
			fitting++
		}
	}
	if fitting == 1 {
		return token, nil
	}
	wanted := "token"
	if c.topic != "" {
		wanted = fmt.Sprintf("token of a key whose name begins with %q", c.topic)
	}
	switch {
	case fitting > 1:
		named = slices.DeleteFunc(named, func(t fence.Token) bool { return !c.fits(t) })
		return fence.Token{}, fmt.Errorf("%w: %s: %s %d tokens that fit, %s: name the one that is meant with Fence",
			ErrFenceMissing, stmt.Table, from, fitting, listed(named))
	case len(named) > 0:
		return fence.Token{}, fmt.Errorf("%w: %s: %s no %s, but %s", ErrFenceMissing, stmt.Table, from, wanted, listed(named))
	}
	return fence.Token{}, fmt.Errorf("%w: %s: %s no %s: use the context of a lock that was acquired with one, Fence, or IgnoreFence",
		ErrFenceMissing, stmt.Table, from, wanted)
}

// fits tells whether the column is written by the token.
func (c *fenceColumn) fits(token fence.Token) bool {
	return !token.IsZero() && (c.topic == "" || token.Topic == c.topic)
}

// listed is tokens for people.
func listed(tokens []fence.Token) string {
	var b strings.Builder
	for i, token := range tokens {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(token.String())
	}
	return b.String()
}

// namedTokens are those of Fence clauses, the last one of each key.
func (i *versionIntent) namedTokens() []fence.Token {
	if i == nil {
		return nil
	}
	var named []fence.Token
	for n, token := range i.tokens {
		last := true
		for _, later := range i.tokens[n+1:] {
			last = last && !later.SameKey(token)
		}
		if last {
			named = append(named, token)
		}
	}
	return named
}

// asksFence tells whether clauses say something about a fence.
func (i *versionIntent) asksFence() bool { return i != nil && (i.ignoreFence || len(i.tokens) > 0) }

// asksVersion tells whether clauses say something about versions, or columns to compare.
func (i *versionIntent) asksVersion() bool {
	return i != nil && (i.ignore || i.expects || i.touch || i.preserve || i.unchanged != nil)
}

// refuseIntentOnText fails a statement of raw SQL that names a token or what a row must be like: nothing can be added to
// its text.
func refuseIntentOnText(db *gorm.DB) {
	stmt := db.Statement
	intent := versionIntentOf(stmt)
	if intent == nil || stmt.SQL.Len() == 0 || isSavepoint(stmt) {
		return
	}
	switch {
	case len(intent.tokens) > 0:
		fail(db, fmt.Errorf("gormlock: Fence guards no raw SQL: write the token's Guard into it, or call FenceTx first"))
	case intent.compares():
		fail(db, fmt.Errorf("gormlock: ExpectVersion and IfUnchanged compare nothing in raw SQL: write the condition into it"))
	}
}
