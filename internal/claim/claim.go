package claim

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// claim is one call of Claim.
type claim struct {
	limit  int
	assign map[string]any
	scopes []func(*gorm.DB) *gorm.DB

	running  bool // GORM is executing it
	scoped   bool // GORM runs scopes first
	prepared bool
	stmt     *gorm.Statement // the one statement that may claim, once it is prepared
	model    *model.Model
	from     relation
	text     *claimSQL
	set      clause.Set
	guard    *guard.FenceGuard
	write    *guard.Write // what it writes, once the statement is built
	outcome  outcome
}

// Into claims up to limit rows into the slice that rows points to.
func Into(db *gorm.DB, rows any, limit int, assign map[string]any, scopes []func(*gorm.DB) *gorm.DB) error {
	c := &claim{limit: limit, assign: assign, scopes: scopes}
	if err := install.Usable(db); err != nil {
		return err
	}
	speaks := dialect.Of(db)
	if !speaks.LocksRows() {
		return fmt.Errorf("%w, not %s: claim rows", fault.ErrNotPostgres, db.Name())
	}
	if c.limit <= 0 {
		return fmt.Errorf("gormlock: claim: the limit is %d and must be at least 1", c.limit)
	}
	if slice := reflect.TypeOf(rows).Elem(); !statement.IsSliceOfStructs(slice) {
		return fmt.Errorf("gormlock: claim: %w: %s is not a slice of models, or of pointers to models", schema.ErrUnsupportedDataType, slice)
	}
	if !db.DryRun && statement.Transaction(db.Statement) == nil && (!speaks.UpdateReturns() || journal.MaySendTwice(db)) {
		return c.inTransaction(db, rows)
	}
	query, err := c.query(statement.Beside(db), rows)
	if err != nil {
		return err
	}
	began := install.Of(db).Began()
	c.running, c.scoped = true, statement.HasScopes(query.Statement)
	query = query.Callback().Row().Execute(query)
	opened, _ := query.Statement.Dest.(*sql.Rows)
	if row, ok := query.Statement.Dest.(*sql.Row); ok && row != nil { // it belongs to another query: Scan gives its connection back
		_ = row.Scan()
	}
	switch {
	case c.write == nil && opened != nil:
		return errors.Join(errOtherQuery, opened.Close())
	case !c.prepared:
		return cmp.Or(query.Error, errOtherQuery)
	case query.Error != nil && c.write == nil, query.DryRun:
		return query.Error
	case query.Error != nil:
		err = query.Error
	case opened == nil:
		return errors.New("gormlock: claim: nothing was claimed: another plugin has replaced the callback gorm:row")
	default:
		err = c.scan(query, opened, rows)
	}
	tellClaim(install.Of(db), query, began)
	c.write.RememberClaim(query, reflect.ValueOf(rows).Elem(), err, c.outcome == unknown)
	if refused := c.write.RefusedByFence(query.Statement, err); refused != nil {
		return refused
	}
	if err != nil {
		return c.verdict(query.Statement, err)
	}
	return nil
}
