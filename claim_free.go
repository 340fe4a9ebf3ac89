package gormlock

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"
)

// claimName marks, among a statement's clauses, the query of a claim's free rows.
const claimName = "gormlock:claim"

// claimMark is the claim on its way to shapeClaim.
type claimMark struct {
	limit  int
	shaped *bool
}

// Build implements [clause.Expression]. There is nothing to build.
func (claimMark) Build(clause.Builder) {}

// freeRows builds the query that finds and locks the rows, without running it: the scopes say which, what a claim needs
// is put in by shapeClaim, after the last scope of a scope has run.
func (c claim) freeRows(db *gorm.DB, rows any) (*gorm.DB, error) {
	for _, scope := range c.scopes {
		if scope == nil {
			return nil, fmt.Errorf("%w: a nil scope", ErrOption)
		}
	}
	shaped := false
	query := db.Session(&gorm.Session{DryRun: true, Logger: logger.Discard})
	query = query.Model(reflect.New(modelOf(rows)).Interface()).Scopes(c.scopes...)
	query.Statement.Clauses[claimName] = clause.Clause{Name: claimName, Expression: claimMark{c.limit, &shaped}}
	query = query.Find(rows)
	switch {
	case query.Error != nil:
		return nil, query.Error
	case !shaped:
		return nil, fmt.Errorf("gormlock: claim: a scope returned another query than it was given")
	}
	return query, nil
}

// shapeClaim makes the query of a claim's free rows what the claim needs, or says what does not go with it.
func shapeClaim(db *gorm.DB) {
	stmt := db.Statement
	mark, ok := stmt.Clauses[claimName].Expression.(claimMark)
	if !ok || db.Error != nil {
		return
	}
	if err := fitsClaim(stmt); err != nil {
		fail(db, fmt.Errorf("gormlock: claim %s: %w", tableName(stmt), err))
		return
	}
	columns := make([]clause.Column, len(stmt.Schema.PrimaryFields))
	for i, field := range stmt.Schema.PrimaryFields {
		columns[i] = clause.Column{Table: clause.CurrentTable, Name: field.DBName, Alias: claimKey(i)}
	}
	stmt.Clauses["SELECT"] = clause.Clause{Name: "SELECT", Expression: clause.Select{Columns: columns}}
	// The limit is written out: with a parameter the server could not know how few rows there will be, and might plan
	// to read the whole table for them.
	limit := "LIMIT " + strconv.Itoa(mark.limit)
	if given, _ := stmt.Clauses["LIMIT"].Expression.(clause.Limit); given.Offset > 0 {
		limit += " OFFSET " + strconv.Itoa(given.Offset)
	}
	stmt.Clauses["LIMIT"] = clause.Clause{Expression: clause.Expr{SQL: limit}}
	stmt.Clauses["FOR"] = clause.Clause{Name: "FOR", Expression: rowLockOfClaim(stmt)}
	*mark.shaped = true
}

func rowLockOfClaim(stmt *gorm.Statement) RowLockClause {
	return RowLockClause{strength: ForNoKeyUpdate, skip: true, of: []string{stmt.Table}}
}

// claimKey is the name of a key column in the claim's statement, where columns of the table are named too.
func claimKey(i int) string {
	if i == 0 {
		return claimKeys + "1"
	}
	return claimKeys + strconv.Itoa(i+1)
}

const claimKeys = "gormlock_key"

// fitsClaim says what of the query has no place in a claim. What the row lock refuses it refuses itself.
func fitsClaim(stmt *gorm.Statement) error {
	limit, _ := stmt.Clauses["LIMIT"].Expression.(clause.Limit)
	_, grouped := stmt.Clauses["GROUP BY"]
	_, locked := stmt.Clauses["FOR"]
	_, selected := stmt.Clauses["SELECT"]
	switch {
	case stmt.Schema == nil:
		return fmt.Errorf("the rows have no model")
	case stmt.Schema.ModelType != modelOf(stmt.Dest):
		return fmt.Errorf("a scope changed the model to %s", stmt.Schema.Name)
	case len(stmt.Schema.PrimaryFields) == 0:
		return gorm.ErrPrimaryKeyRequired
	case stmt.SQL.Len() > 0:
		return fmt.Errorf("raw SQL has no place in a claim")
	case stmt.Distinct:
		return fmt.Errorf("Distinct has no place in a claim, which is about rows of the table") //nolint:staticcheck // names of calls
	case grouped:
		return fmt.Errorf("Group has no place in a claim, which is about rows of the table") //nolint:staticcheck // names of calls
	case locked:
		return fmt.Errorf("another row lock has no place in a claim, which has its own")
	case selected || len(stmt.Selects) > 0 || len(stmt.Omits) > 0:
		return fmt.Errorf("Select and Omit have no place in a claim, which reads whole rows") //nolint:staticcheck // names of calls
	case limit.Limit != nil && *limit.Limit >= 0:
		return fmt.Errorf("Limit(%d) in a scope: the claim's own limit is its second argument", *limit.Limit)
	case aliased(stmt):
		return fmt.Errorf("the table must stand under its own name, without an alias")
	}
	for name := range stmt.Clauses {
		if !claimClauses[name] && (name != versionIntentClause || versionIntentOf(stmt).asksVersion()) {
			return fmt.Errorf("the clause %q has no place in a claim", name)
		}
	}
	return nil
}

// claimClauses are the clauses of a query that a claim knows what to do with.
var claimClauses = map[string]bool{
	"FROM": true, "WHERE": true, "ORDER BY": true, "LIMIT": true, "soft_delete_enabled": true,
	claimName: true, xactLockName: true,
}

// modelOf is the type of the elements of a slice of models.
func modelOf(rows any) reflect.Type {
	element := reflect.TypeOf(rows)
	for element.Kind() == reflect.Pointer || element.Kind() == reflect.Slice {
		element = element.Elem()
	}
	return element
}

// aliased reports whether the query's own table is more than a name, which an UPDATE could not repeat.
func aliased(stmt *gorm.Statement) bool {
	if stmt.TableExpr == nil {
		return false
	}
	name := stmt.Quote(clause.Table{Name: stmt.Table})
	return len(stmt.TableExpr.Vars) > 0 || stmt.TableExpr.SQL != name && !strings.HasSuffix(stmt.TableExpr.SQL, "."+name)
}

// joinedAssociations are the associations that Joins would have loaded.
func joinedAssociations(stmt *gorm.Statement) []string {
	var names []string
	for _, join := range stmt.Joins {
		if _, ok := relationAlias(stmt, join.Name, join.Alias); ok {
			names = append(names, join.Name)
		}
	}
	return names
}

// fieldOf is the column of the model that a key of assign names.
func fieldOf(s *schema.Schema, name string) (*schema.Field, error) {
	field := s.LookUpField(name)
	switch {
	case field == nil || field.DBName == "":
		return nil, fmt.Errorf("the model has no column %q", name)
	case field.PrimaryKey:
		return nil, fmt.Errorf("%s is of the primary key, which a claim does not change", field.DBName)
	case !field.Updatable:
		return nil, fmt.Errorf("%s is read-only in the model", field.DBName)
	}
	return field, nil
}
