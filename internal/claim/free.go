package claim

import (
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/xact"
)

// claimName marks the query of a claim's free rows, among the statement's clauses.
const claimName = "gormlock:claim"

// Build implements [clause.Expression]. The clauses that hold a claim are replaced before they are built. If one is built, a
// scope has run the query instead of returning it.
func (*claim) Build(builder clause.Builder) {
	if stmt, ok := builder.(*gorm.Statement); ok {
		fault.Add(stmt.DB, errOwnQuery)
	}
}

// query is the query of the free rows, made by the scopes, with the claim in its clauses. It has a row lock from the
// start, so that dbresolver runs it on the primary.
func (c *claim) query(db *gorm.DB, rows any) (*gorm.DB, error) {
	query := db.Set("rows", true)
	stmt := query.Statement
	if err := guard.LeftConditions(stmt); err != nil {
		return nil, err
	}
	if stmt.Dest = rows; stmt.Model == nil {
		stmt.Model = rows
	}
	if _, locked := stmt.Clauses["FOR"]; locked {
		return nil, fmt.Errorf("gormlock: claim: %w", errOtherLock)
	}
	if _, selected := stmt.Clauses["SELECT"]; selected {
		return nil, fmt.Errorf("gormlock: claim: %w", errSelected)
	}
	stmt.Clauses[claimName] = clause.Clause{Name: claimName, Expression: c, Builder: buildClaim}
	for _, name := range []string{"SELECT", "FOR"} { // the claim writes its own
		stmt.Clauses[name] = clause.Clause{Name: name, Expression: c}
	}
	for _, scope := range c.scopes {
		if scope == nil {
			return nil, fmt.Errorf("%w: a nil scope", fault.ErrOption)
		}
		if query = scope(query); query == nil || claimOn(query) != c {
			return nil, errOtherQuery
		}
	}
	return query, nil
}

var (
	errOtherQuery = errors.New("gormlock: claim: a scope returned another query than the one it was given")
	errOwnQuery   = errors.New("gormlock: claim: a scope must not run the query it was given: start another with Session(&gorm.Session{NewDB: true})")
	errSelected   = errors.New("a claim reads whole rows: leave out Select and Omit")
	errOtherLock  = errors.New("a claim has a row lock of its own: leave out the other")
)

func claimOn(query *gorm.DB) *claim {
	c, _ := query.Statement.Clauses[claimName].Expression.(*claim)
	return c
}

// PrepareClaim runs before the statement and its locks, and refuses everything that a claim cannot have.
func PrepareClaim(db *gorm.DB) {
	c := claimOn(db)
	if c == nil || db.Error != nil {
		return
	}
	if err := c.prepare(db); err != nil {
		fault.Add(db, err)
	}
}

func (c *claim) prepare(db *gorm.DB) (err error) {
	if c.prepared || !c.running || c.scoped && !statement.ExecutedBy("claim.Into") {
		return errOwnQuery
	}
	if err := c.fits(db.Statement); err != nil {
		return fmt.Errorf("gormlock: claim %s: %w", statement.TableName(db.Statement), err)
	}
	if c.model = model.Of(db); c.model.Err != nil {
		return c.model.Err
	}
	if len(c.model.Roots) > 0 {
		return fmt.Errorf("gormlock: claim: %s has a root, which a claim does not move: claim the roots, or lock the rows and update them", c.model.Schema.Name)
	}
	if c.set, err = c.assignments(db.Statement); err != nil {
		return err
	}
	if c.guard, err = c.fence(db.Statement); err != nil {
		return err
	}
	c.prepared, c.stmt = true, db.Statement
	c.stmt.BuildClauses = []string{claimName}
	c.stmt.SQL.Grow(600)
	return nil
}

// buildClaim turns the query of a claim's free rows into the statement that claims them. It runs when GORM builds the
// statement, after the row callbacks of other plugins have changed it.
func buildClaim(marked clause.Clause, builder clause.Builder) {
	stmt, ok := builder.(*gorm.Statement)
	c, claims := marked.Expression.(*claim)
	if !ok || !claims {
		return
	}
	if c.stmt != stmt {
		fault.Add(stmt.DB, errOwnQuery)
		return
	}
	if err := c.fits(stmt); err != nil { // again: other plugins may have changed it
		fault.Add(stmt.DB, fmt.Errorf("gormlock: claim %s: %w", statement.TableName(stmt), err))
		return
	}
	c.from = c.relationOf(stmt)
	c.text = c.textIn(stmt, c.from.form(""))
	if err := c.text.lock.Fits(stmt); err != nil {
		fault.Add(stmt.DB, err)
		return
	}
	mark.Heed(stmt)
	c.write = c.writeStatement(stmt)
}

// fits refuses everything that a claim cannot have. What a row lock cannot have is refused by the row lock.
func (c *claim) fits(stmt *gorm.Statement) error {
	limit, _ := stmt.Clauses["LIMIT"].Expression.(clause.Limit)
	_, grouped := stmt.Clauses["GROUP BY"]
	selected := stmt.Clauses["SELECT"].Expression != clause.Expression(c)
	switch {
	case stmt.Schema == nil:
		return fmt.Errorf("the rows have no model")
	case stmt.Schema.ModelType != statement.ModelOf(stmt.Dest):
		return fmt.Errorf("Model has changed the model to %s: a claim's model is the type of its rows, leave Model out", stmt.Schema.Name) //nolint:staticcheck // names of calls
	case stmt.Model != stmt.Dest && hasKey(stmt, reflect.ValueOf(stmt.Model)):
		return fmt.Errorf("Model has a struct with a primary key, which a claim does not look at: use Where") //nolint:staticcheck // names of calls
	case len(stmt.Schema.PrimaryFields) == 0:
		return gorm.ErrPrimaryKeyRequired
	case stmt.SQL.Len() > 0:
		return fmt.Errorf("a claim cannot run raw SQL")
	case stmt.Distinct:
		return fmt.Errorf("a claim changes rows of the table: leave out Distinct")
	case grouped:
		return fmt.Errorf("a claim changes rows of the table: leave out Group")
	case len(stmt.ColumnMapping) > 0:
		return fmt.Errorf("a claim reads each column into its own field: leave out MapColumns")
	case stmt.Clauses["FOR"].Expression != clause.Expression(c):
		return errOtherLock
	case selected || len(stmt.Selects) > 0 || len(stmt.Omits) > 0:
		return errSelected
	case limit.Limit != nil && *limit.Limit >= 0:
		return fmt.Errorf("Limit(%d) in a scope: give the limit to Claim itself", *limit.Limit)
	case statement.Aliased(stmt):
		return fmt.Errorf("the table must have its own name, without an alias")
	}
	for name := range stmt.Clauses {
		if !fitsClaim(name) && (name != asked.ClauseName || asked.Of(stmt).AsksVersion()) {
			return fmt.Errorf("a claim cannot have the clause %q: leave it out", name)
		}
	}
	return fitsJoins(stmt)
}

// fitsJoins refuses a joined association with conditions: it is loaded by a query of its own after the claim, which would not have them.
func fitsJoins(stmt *gorm.Statement) error {
	for _, join := range stmt.Joins {
		if _, ok := statement.RelationAlias(stmt, join.Name, join.Alias); ok && len(join.Conds) > 0 {
			return fmt.Errorf("Joins(%q) has conditions, Select or Omit, and a claim loads associations whole: put the conditions into Where, or write the join as SQL and use Preload", join.Name)
		}
	}
	return nil
}

// hasKey reports whether a value given to Model, or one of its elements, is a struct of the statement's model with a key.
func hasKey(stmt *gorm.Statement, model reflect.Value) bool {
	for model.Kind() == reflect.Pointer || model.Kind() == reflect.Interface {
		model = model.Elem()
	}
	switch model.Kind() {
	case reflect.Struct:
		if model.Type() != stmt.Schema.ModelType {
			return false
		}
		key, _ := statement.KeyOf(stmt, stmt.Schema, model)
		return key != nil
	case reflect.Slice, reflect.Array:
		for i := range model.Len() {
			if hasKey(stmt, model.Index(i)) {
				return true
			}
		}
	}
	return false
}

// fitsClaim reports whether a claim can have a clause of this name.
func fitsClaim(name string) bool {
	switch name {
	case "SELECT", "FROM", "WHERE", "ORDER BY", "LIMIT", "FOR", claimName, guard.UsedClause, xact.ClauseName, mark.Running, "soft_delete_enabled", "gorm:db_resolver:using":
		return true
	}
	return false
}

// joinedAssociations are the associations that Joins would have loaded.
func joinedAssociations(stmt *gorm.Statement) []string {
	var names []string
	for _, join := range stmt.Joins {
		if _, ok := statement.RelationAlias(stmt, join.Name, join.Alias); ok {
			names = append(names, join.Name)
		}
	}
	return names
}

// fieldOf is the field of the column that a key of assign names.
func fieldOf(s *schema.Schema, name string) (*schema.Field, error) {
	field := s.LookUpField(name)
	switch {
	case field == nil || field.DBName == "":
		return nil, fmt.Errorf("the model has no column %q", name)
	case field.PrimaryKey:
		return nil, fmt.Errorf("%s is part of the primary key, which a claim does not change", field.DBName)
	case !field.Updatable:
		return nil, fmt.Errorf("%s is read-only in the model", field.DBName)
	}
	return field, nil
}

// Is reports whether the statement is a claim's. A claim notes itself what it has read.
func Is(stmt *gorm.Statement) bool {
	_, claims := stmt.Clauses[claimName]
	return claims
}
