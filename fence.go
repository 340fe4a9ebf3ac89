package gormlock

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/rowlock"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/lockkey"
)

// ErrFenced says that the writer was superseded: a later token of its key was issued, or the row was written with a later
// one. Nothing of the statement is stored. The error itself is a [*FencedError]. Do not run it again: the writer no longer
// holds the lock.
var ErrFenced = fault.ErrFenced

// ErrFenceMissing says that a write to a model with a fence has no token, or none that fits. Nothing was executed. Use the
// context of the lock (db.WithContext), or name the token with [Fence], or say [IgnoreFence].
var ErrFenceMissing = fault.ErrFenceMissing

// FenceClause sets the token by which one statement writes a model with a fence: see [Fence] and [IgnoreFence]. Use it in
// db.Clauses and gorm.G, and its method ModifyStatement in the Scopes of the generics API.
type FenceClause struct{ versionClauses }

// Fence guards one statement by token, and replaces any token in the statement's context. Associations saved with the
// statement, and writes of its hooks, get the token by their context. It does nothing on a read. It is an error on raw SQL and
// on a table without its model, because those would be written unguarded.
//
// A model's fence is a column of 64 bits that holds the token of the last writer:
//
//	type Report struct {
//		ID    int64
//		Body  string
//		Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
//	}
//
// This model takes tokens of keys whose first part is "report". A bare `fence` takes any token, and needs exactly one. Every
// create, update and delete of the model is guarded, in its own statement:
//
//   - Once a later token of the key was issued, no row is changed. A row that was written with a later token is not changed
//     either. The error is [ErrFenced], and nothing is stored.
//   - A row that is created or changed has the token afterwards, and so does the struct. After a refusal and after any
//     rollback the struct is as before. The value in the struct's field is never written, and assigning the column by
//     name is an error.
//   - A statement about many rows writes all of them or none.
//   - A create locks the row of the token, so that a later token waits for its transaction. [FenceTx] does that for a whole
//     transaction. Another statement that runs while a later token is issued may still succeed.
//
// Without a fitting token the error is [ErrFenceMissing], even in a dry run. Other databases than PostgreSQL have no table of
// tokens, so only the numbers in the rows are compared. There a superseded holder is refused only after the later one has written, and a
// create is never refused.
func Fence(token fence.Token) FenceClause {
	return FenceClause{guard.Fence(token)}
}

// IgnoreFence lets one statement write a model with a fence without a token and without a check. The fence of a row stays
// as it is, unless the statement assigns it by name; a new row gets what its struct holds.
func IgnoreFence() FenceClause {
	return FenceClause{guard.IgnoreFence()}
}

// FenceTx guards everything that the transaction tx writes from now on, including raw SQL and models without a fence. It locks the row of the token
// FOR SHARE, so a later token of the key can only be issued after tx has ended. If a later token was issued, or this one never was, the error is
// [ErrFenced]. Then tx must be rolled back, at least to a savepoint from before the call, such as the one of a nested transaction. Otherwise its
// commit fails, with the same error if gormlock saw tx begin. Outside of a transaction the error is [ErrNoTransaction]. The wait is bounded by
// [DefaultTimeout].
//
// Call FenceTx first: after tx has changed rows, it can deadlock with the transaction that FenceTx waits for. At REPEATABLE READ
// and above, a token that was issued since the snapshot is an error for which [IsRetryable] is true.
//
// Writes to models with a fence still need the token, in their context or by [Fence].
func FenceTx(tx *gorm.DB, token fence.Token) error { return guard.FenceTx(tx, token, rowlock.Bounded) }

// FenceFor takes the transaction-level advisory lock on key, as [AcquireXactLock] does, and issues the key's next token in
// the transaction tx, which must be READ COMMITTED. Give the token to the writes of tx in their context:
//
//	token, err := gormlock.FenceFor(tx, gormlock.Key("report", 42))
//	...
//	tx = tx.WithContext(fence.NewContext(tx.Statement.Context, token))
//	err = tx.Save(&report).Error
//
// The token is issued when tx commits. From then on earlier holders are refused. Until then, others who want a token of the
// key wait, and so do creates with an earlier token. After a rollback, even to an earlier savepoint, the token was never
// issued: do not use it again. The options are [Try] and [Timeout].
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

// FencedError says which write of a superseded holder was refused. It is [ErrFenced].
type FencedError struct {
	Table      string         // of the row; empty where no row was written: FenceTx
	Op         string         // create, update, save, delete, upsert, claim or touch; empty for FenceTx
	PrimaryKey map[string]any // by column; empty where the statement named no row, or wrote many
	Token      fence.Token    // the token of the write
	Latest     fence.Token    // the latest token of the key; without a name: the token in the row; 0: Token itself was never issued

	keys   []string
	passed bool // some row has a later token; it is not known which row
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

// Unwrap returns the error of the server, if the server noticed it.
func (e *FencedError) Unwrap() error { return e.cause }
