package gormlock

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/lockkey"
)

// ErrFenced is the error of a write by a holder that was superseded: a later token of its key has been issued, or the row
// was written with a later one. Nothing of the statement is stored. The error itself is a [*FencedError]. Running it
// again cures nothing: who gets it no longer holds the lock.
var ErrFenced = fault.ErrFenced

// ErrFenceMissing is the error of a write to a model with a fence by which no token is carried, or none that fits.
// Nothing was executed. The token comes in the statement's context, from the lock that was acquired with one, or by
// [Fence]; [IgnoreFence] says that none is meant.
var ErrFenceMissing = fault.ErrFenceMissing

// FenceClause says by which token one statement writes a model with a fence: see [Fence] and [IgnoreFence]. It goes into
// db.Clauses and gorm.G, and its method ModifyStatement into the Scopes of the generics API.
type FenceClause struct{ versionClauses }

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
	return FenceClause{guard.Fence(token)}
}

// IgnoreFence lets one statement write a model with a fence without a token and without a check. The fence of a row stays
// as it is, unless the statement assigns it by name; a new row gets what its struct holds.
func IgnoreFence() FenceClause {
	return FenceClause{guard.IgnoreFence()}
}

// FenceTx guards the rest of the transaction tx by token: it locks the row of the token FOR SHARE, so that a later token of
// its key is issued when tx has ended and not before, and whatever tx writes, to models without a fence too, is written
// by the latest holder. Where a later token has been issued, or this one never was, the error is [ErrFenced], and tx can
// only be rolled back: its commit fails, with the same error where gormlock saw it begin. Without a
// transaction it is [ErrNoTransaction].
//
// Call it first: a transaction that has changed rows already may be waited for by the one that it waits for here. At
// REPEATABLE READ and above a token that was issued since the snapshot is an error that [IsRetryable] knows.
//
// It does not carry the token: writes to models with a fence look for it in their context, or in [Fence].
func FenceTx(tx *gorm.DB, token fence.Token) error { return guard.FenceTx(tx, token) }

// FenceFor takes the transaction-level advisory lock on key, as [AcquireXactLock] does, and issues the next token of it
// inside the transaction tx. Its writes carry it in their context:
//
//	token, err := gormlock.FenceFor(tx, gormlock.Key("report", 42))
//	...
//	tx = tx.WithContext(fence.NewContext(tx.Statement.Context, token))
//	err = tx.Save(&report).Error
//
// The token is issued when tx commits, and the holders before it are refused from then on. Until then whoever wants a token
// of the key waits, and so does a create that was fenced by an earlier one. After a rollback, or one to a savepoint
// set before, it was never issued: do not use it again. Its options are [Try] and [Timeout].
func FenceFor(tx *gorm.DB, key lockkey.Key, opts ...WaitOption) (fence.Token, error) {
	waits := make([]LockOption, len(opts))
	for i, o := range opts {
		waits[i] = o
	}
	if err := AcquireXactLock(tx, []lockkey.Key{key}, waits...); err != nil {
		return fence.Token{}, err
	}
	if tx.DryRun {
		return fence.For(key, 0)
	}
	token, err := fence.Issue(tx.Statement.Context, statement.Unprepared(tx.Statement.ConnPool), key)
	return token, fault.Caused(tx, err)
}

// FencedError says which write came from a holder that was superseded. It is [ErrFenced].
type FencedError struct {
	Table      string         // of the row; empty where no row was written: FenceTx
	Op         string         // create, update, save, delete, upsert, claim or touch; empty for FenceTx
	PrimaryKey map[string]any // by column; empty where the statement named no row, or wrote many
	Token      fence.Token    // the one of the write
	Latest     fence.Token    // the latest issued for its key, or, without a name, the one the row was written with; 0: the token itself was never issued

	keys   []string
	passed bool // some row has a later token, and which is not known
	cause  error
}

func newFencedError(f fault.Fenced) error {
	return &FencedError{f.Table, f.Op, f.PrimaryKey, f.Token, f.Latest, f.Keys, f.Passed, f.Cause}
}

// Error names the row, the token of the write, and the one that refused it.
func (e *FencedError) Error() string {
	return (&fault.Fenced{Table: e.Table, PrimaryKey: e.PrimaryKey, Keys: e.keys, Token: e.Token, Latest: e.Latest, Passed: e.passed}).Text()
}

// Is makes a FencedError ErrFenced.
func (*FencedError) Is(target error) bool { return target == fault.ErrFenced }

// Unwrap is what the server said, where it was the server that noticed.
func (e *FencedError) Unwrap() error { return e.cause }
