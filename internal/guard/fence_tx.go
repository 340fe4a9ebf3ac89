package guard

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
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
	return refuseHolder(tx, token, latest)
}

// refuseHolder refuses the holder of a token in a transaction, which can only be rolled back.
func refuseHolder(tx *gorm.DB, token fence.Token, latest int64) error {
	refused := (&fault.Fenced{PrimaryKey: map[string]any{}, Token: token, Latest: Issued(token, latest)}).Err()
	journal.Doom(tx, refused)
	install.Of(tx).TellRefused(tx.Statement.Context, refused)
	return refused
}

// refuseLateHolder compares the token of an update that sets nothing and may save associations: GORM sends no statement that could.
func (w *Write) refuseLateHolder(db *gorm.DB) {
	stmt := db.Statement
	if !w.fence.guards() || db.Error != nil || db.DryRun || stmt.SQL.Len() > 0 || len(stmt.Schema.Relationships.Relations) == 0 || !statement.IsPostgres(db) || statement.Transaction(stmt) == nil {
		return
	}
	token := w.fence.token
	latest, err := fence.Latest(stmt.Context, statement.Unprepared(stmt.ConnPool), token)
	if err == nil && latest > token.Number {
		err = refuseHolder(db, token, latest)
	}
	if err != nil {
		fault.Add(db, fault.Caused(db, err))
	}
}

// refuseLateOfChildren does so for what Association(…).Clear, Delete and Replace take away from the structs of a fenced model, and for a map in
// Append: GORM sends statements about the children, or about the links to them, and none about the model, or that one last.
func refuseLateOfChildren(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || stmt.Schema == nil || !statement.IsPostgres(db) || len(fence.FromContext(stmt.Context)) == 0 {
		return
	}
	if intent := IntentOf(stmt); intent != nil && intent.ignoreFence {
		return
	}
	isMap := reflect.Indirect(reflect.ValueOf(stmt.Dest)).Kind() == reflect.Map
	if owned := statement.InUnlinking() || isMap && statement.InAppend(); !owned {
		return
	}
	statement.EachParsed(db, func(s *schema.Schema) bool {
		owner := model.OfSchema(db, s)
		if owner.Fence == nil || owner.Schema == stmt.Schema || !hasChildren(s, stmt.Schema) {
			return true
		}
		token, err := owner.Fence.TokenOf(stmt, nil)
		if err != nil {
			return true // of another lock
		}
		latest, err := fence.Latest(stmt.Context, statement.Unprepared(stmt.ConnPool), token)
		if err == nil && latest > token.Number {
			err = refuseHolder(db, token, latest)
		}
		if err != nil {
			fault.Add(db, fault.Caused(db, err))
		}
		return err == nil
	})
}

// hasChildren reports whether structs of a model have an association of which the other one has the children, or the links.
func hasChildren(s, other *schema.Schema) bool {
	return slices.ContainsFunc(statement.OwnRelations(s), func(r *schema.Relationship) bool { return r.FieldSchema == other || r.JoinTable == other })
}
