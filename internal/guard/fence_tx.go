package guard

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/operation"
	"github.com/gormlock/gormlock/internal/statement"
)

// FenceTx guards the rest of a transaction with a token. bounded limits the wait of a question that locks rows of a table.
func FenceTx(tx *gorm.DB, token fence.Token, bounded func(tx *gorm.DB, table string, ask func() error) error) error {
	if err := install.Usable(tx); err != nil {
		return err
	}
	if err := mark.RefuseGiven(tx, "FenceTx", "give it the transaction itself, and take locks with AcquireXactLock"); err != nil {
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
	var latest int64
	err := bounded(tx, fence.Table, func() (err error) {
		latest, err = fence.Latest(tx.Statement.Context, statement.Unprepared(tx.Statement.ConnPool), token)
		return err
	})
	if err != nil {
		return fault.Caused(tx, err)
	}
	switch {
	case latest == token.Number:
		return nil
	case latest < token.Number:
		latest = 0 // the token was never issued, or its issuing was rolled back
	}
	return refuseHolder(tx, token, latest)
}

// refuseHolder refuses the holder of a token in a transaction, which then can only be rolled back.
func refuseHolder(tx *gorm.DB, token fence.Token, latest int64) error {
	refused := (&fault.Fenced{PrimaryKey: map[string]any{}, Token: token, Latest: Issued(token, latest)}).Err()
	journal.Doom(tx, refused)
	install.Of(tx).TellRefused(tx.Statement.Context, refused)
	return refused
}

// refuseLateHolder compares the token of an update that sets nothing and may save associations: GORM sends no statement that could compare it.
func (w *Write) refuseLateHolder(db *gorm.DB) {
	stmt := db.Statement
	if !w.fence.guards() || db.Error != nil || db.DryRun || stmt.SQL.Len() > 0 || !statement.HasRelations(stmt.Schema) || !statement.IsPostgres(db) || statement.Transaction(stmt) == nil {
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

// refuseLateOfChildren does the same for rows that Association(…).Clear, Delete and Replace remove from structs of a fenced model, and for a map in
// Append, and for what gorm.G does to children. GORM sends statements about the children or the links, and none about the model, or only after the others.
func refuseLateOfChildren(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || stmt.Schema == nil || !statement.IsPostgres(db) || len(fence.FromContext(stmt.Context)) == 0 {
		return
	}
	if asked.Of(stmt).IgnoresFence() {
		return
	}
	if owners := operation.Owners(db); owners != nil {
		if owner := model.OfSchema(db, owners); owner.Fence != nil {
			if err := refuseLateOwner(db, owner); err != nil {
				fault.Add(db, err)
			}
		}
		return
	}
	keys := keysOfOwner(stmt)
	if len(keys) == 0 {
		return
	}
	statement.EachParsed(db, func(s *schema.Schema) bool {
		owner := model.OfSchema(db, s)
		if owner.Fence == nil || !ownsBy(s, stmt.Schema, keys) {
			return true
		}
		err := refuseLateOwner(db, owner)
		if err != nil {
			fault.Add(db, err)
		}
		return err == nil
	})
}

// keysOfOwner are the columns in which a statement of an association may have the key of its owner: those that its conditions compare, or those of a
// map in Append.
func keysOfOwner(stmt *gorm.Statement) (names []string) {
	given := reflect.Indirect(reflect.ValueOf(stmt.Dest))
	switch {
	case given.Kind() == reflect.Map && slices.Contains(stmt.BuildClauses, "VALUES"):
		if row, is := given.Interface().(map[string]any); is && statement.InAppend() {
			return slices.Collect(maps.Keys(row))
		}
		return nil
	case slices.Contains(stmt.BuildClauses, "VALUES") || !statement.InUnlinking():
		return nil
	}
	_, where := statement.Conditions(stmt)
	return namesIn(where)
}

// namesIn are the columns that conditions compare, in order.
func namesIn(conditions []clause.Expression) (names []string) {
	for _, condition := range conditions {
		switch c := condition.(type) {
		case clause.IN:
			names = append(names, columnNames(c.Column)...)
		case clause.Eq:
			names = append(names, columnNames(c.Column)...)
		case clause.Where:
			names = append(names, namesIn(c.Exprs)...)
		case clause.AndConditions:
			names = append(names, namesIn(c.Exprs)...)
		}
	}
	return names
}

func columnNames(column any) (names []string) {
	switch c := column.(type) {
	case string:
		names = append(names, c)
	case clause.Column:
		names = append(names, c.Name)
	case []clause.Column:
		for i := range c {
			names = append(names, c[i].Name)
		}
	}
	return names
}

// ownsBy reports whether structs of a model have an association whose children, or links, have their owner's key in these columns.
func ownsBy(s, children *schema.Schema, columns []string) bool {
	return slices.ContainsFunc(statement.OwnRelations(s), func(r *schema.Relationship) bool {
		if r.FieldSchema != children && r.JoinTable != children || r.Type == schema.BelongsTo || r.JoinTable != nil && r.JoinTable != children {
			return false
		}
		owned := false
		for _, ref := range r.References {
			if ref.OwnPrimaryKey && !slices.Contains(columns, ref.ForeignKey.DBName) {
				return false
			}
			owned = owned || ref.OwnPrimaryKey && (r.JoinTable == nil || ref.ForeignKey.DBName == columns[0])
		}
		return owned
	})
}

// refuseLateOwner compares the context's token that fits a model with the latest one.
func refuseLateOwner(db *gorm.DB, owner *model.Model) error {
	stmt := db.Statement
	token, fits, err := owner.Fence.InContext(stmt)
	if err != nil || !fits {
		return err
	}
	latest, err := fence.Latest(stmt.Context, statement.Unprepared(stmt.ConnPool), token)
	switch {
	case err != nil:
		return fault.Caused(db, err)
	case latest > token.Number:
		return refuseHolder(db, token, latest)
	}
	return nil
}
