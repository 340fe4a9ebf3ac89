package gormlock

import (
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
)

// ErrFenced is the error of a write by a holder that was superseded: a later token of its key has been issued, or the row
// was written with a later one. Nothing of the statement is stored. The error itself is a [*FencedError]. Running it
// again cures nothing: who gets it no longer holds the lock.
var ErrFenced = errors.New("gormlock: fenced")

// ErrFenceMissing is the error of a write to a model with a fence by which no token is carried, or none that fits.
// Nothing was executed. The token comes in the statement's context, from the lock that was acquired with one, or by
// [Fence]; [IgnoreFence] says that none is meant.
var ErrFenceMissing = errors.New("gormlock: fencing token missing")

// FenceClause says by which token one statement writes a model with a fence: see [Fence] and [IgnoreFence]. It goes into
// db.Clauses and gorm.G, and its method ModifyStatement into the Scopes of the generics API.
type FenceClause struct {
	change func(*versionIntent)
}

// Fence guards one statement by token, before any token that its context carries. What the statement saves with it,
// associations and what hooks write, finds the token in its context. A read does nothing with it; raw SQL, and a
// table without its model, are an error, for they would be written unguarded.
//
// A model's fence is a column of 64 bits that holds the token of the last writer:
//
//	type Report struct {
//		ID    int64
//		Body  string
//		Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
//	}
//
// It is written by tokens of keys whose name begins with "report"; a bare `fence` takes any token, and needs exactly one.
// Every create, update and delete of the model is guarded, in its own statement:
//
//   - A row that was written with a later token is not changed, nor is any row once a later token of the same key has
//     been issued: the error is [ErrFenced], and nothing is stored.
//   - A row that is created or changed holds the token afterwards, and so does the struct; after a refusal and after any
//     rollback the struct is as it was. What a struct holds in the field is never written: assigning the column by name is
//     an error.
//   - A statement about many rows writes all of them or none.
//   - A create locks the row of the token, so that a later token waits for its transaction; [FenceTx] does that for a
//     whole transaction. Any other statement that runs while a later token is being issued may count as the earlier one.
//
// Without a fitting token the error is [ErrFenceMissing], also in a dry run. On a database other than PostgreSQL there is no
// table of tokens: only the numbers in the rows are compared, which a holder passes that was superseded by one who has
// not written yet, and so does every create.
func Fence(token fence.Token) FenceClause {
	return FenceClause{change: func(i *versionIntent) { i.tokens = append(i.tokens[:len(i.tokens):len(i.tokens)], token) }}
}

// IgnoreFence lets one statement write a model with a fence without a token and without a check. The fence of a row stays
// as it is, unless the statement assigns it by name; a new row gets what its struct holds.
func IgnoreFence() FenceClause {
	return FenceClause{change: func(i *versionIntent) { i.ignoreFence = true }}
}

// Name is empty: the clause itself writes nothing.
func (FenceClause) Name() string { return "" }

// Build writes nothing.
func (FenceClause) Build(clause.Builder) {}

// MergeClause merges nothing: ModifyStatement does it.
func (FenceClause) MergeClause(*clause.Clause) {}

// ModifyStatement adds what the clause says to the statement.
func (c FenceClause) ModifyStatement(stmt *gorm.Statement) {
	VersionClause{change: c.change}.ModifyStatement(stmt)
}
