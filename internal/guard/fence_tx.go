package guard

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/statement"
)

// FenceTx guards the rest of a transaction by a token.
func FenceTx(tx *gorm.DB, token fence.Token) error {
	if err := install.Usable(tx); err != nil {
		return err
	}
	switch {
	case token.IsZero():
		return fmt.Errorf("%w: FenceTx of a token that was never issued", fault.ErrFenceMissing)
	case !statement.IsPostgres(tx):
		return fmt.Errorf("%w, not %s: FenceTx of %s", fault.ErrNotPostgres, tx.Name(), token)
	case statement.Transaction(tx.Statement) == nil:
		return fmt.Errorf("%w: FenceTx of %s", fault.ErrNoTransaction, token)
	case tx.DryRun:
		return nil
	}
	latest, err := fence.Latest(tx.Statement.Context, statement.Unprepared(tx.Statement.ConnPool), token)
	if err != nil {
		return fault.Caused(tx, err)
	}
	switch {
	case latest == token.Number:
		return nil
	case latest < token.Number:
		latest = 0 // it was never issued, or that was rolled back
	}
	refused := (&fault.Fenced{PrimaryKey: map[string]any{}, Token: token, Latest: Issued(token, latest)}).Err()
	Doom(tx, refused)
	install.Of(tx).TellRefused(tx.Statement.Context, refused)
	return refused
}
