package guard

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// namedTokens are those of Fence clauses, the last one of each key.
func (i *Intent) namedTokens() []fence.Token {
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

// asksFence reports whether clauses say something about a fence.
func (i *Intent) asksFence() bool { return i != nil && (i.ignoreFence || len(i.tokens) > 0) }

// AsksVersion reports whether clauses say something about versions, or columns to compare.
func (i *Intent) AsksVersion() bool {
	return i != nil && (i.Ignore || i.Expects || i.touch || i.preserve || i.Unchanged != nil)
}

// onlyIgnoresFence reports whether IgnoreFence is all that the statement says.
func (i *Intent) onlyIgnoresFence() bool {
	return i != nil && i.ignoreFence && len(i.tokens) == 0 && !i.compares() && !i.Ignore && !i.touch && !i.preserve && !i.Merges()
}

// RefuseOnText fails a statement of raw SQL that names a token or what a row must be like: nothing can be added to
// its text.
func RefuseOnText(db *gorm.DB) {
	stmt := db.Statement
	if stmt.SQL.Len() == 0 {
		return
	}
	intent := IntentOf(stmt)
	if intent == nil || statement.IsSavepoint(stmt) {
		return
	}
	switch {
	case len(intent.tokens) > 0:
		fault.Add(db, fmt.Errorf("gormlock: Fence does not guard raw SQL: write the token's Guard into it, or call FenceTx first"))
	case intent.compares():
		fault.Add(db, fmt.Errorf("gormlock: ExpectVersion and IfUnchanged compare nothing in raw SQL: write the condition into it"))
	}
}
