package gormlock

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/lockkey"
)

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
func FenceTx(tx *gorm.DB, token fence.Token) error {
	if err := usable(tx); err != nil {
		return err
	}
	switch {
	case token.IsZero():
		return fmt.Errorf("%w: FenceTx of a token that was never issued", ErrFenceMissing)
	case !isPostgres(tx):
		return fmt.Errorf("%w, not %s: FenceTx of %s", ErrNotPostgres, tx.Name(), token)
	case transactionOf(tx.Statement) == nil:
		return fmt.Errorf("%w: FenceTx of %s", ErrNoTransaction, token)
	case tx.DryRun:
		return nil
	}
	latest, err := fence.Latest(tx.Statement.Context, unprepared(tx.Statement.ConnPool), token)
	if err != nil {
		return err
	}
	if latest != 0 && latest <= token.Number {
		return nil
	}
	refused := &FencedError{PrimaryKey: map[string]any{}, Token: token, Latest: issued(token, latest)}
	doom(tx, refused)
	pluginOf(tx).tellRefused(tx.Statement.Context, refused)
	return refused
}

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
	return fence.Issue(tx.Statement.Context, unprepared(tx.Statement.ConnPool), key)
}
