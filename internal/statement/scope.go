package statement

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
)

// HasScopes reports whether GORM will run scopes before the statement.
func HasScopes(stmt *gorm.Statement) bool {
	return scopesOfStatement == nil || reflect.ValueOf(stmt).Elem().FieldByIndex(scopesOfStatement).Len() > 0
}

// scopesOfStatement is where GORM keeps them.
var scopesOfStatement = placeInStatement("scopes")

// IsAssigned reports whether Assign was given a struct of this type alone. FirstOrCreate makes a map of it.
func IsAssigned(stmt *gorm.Statement, model reflect.Type) bool {
	if assignsOfStatement == nil {
		return false
	}
	given := reflect.ValueOf(stmt).Elem().FieldByIndex(assignsOfStatement)
	if given.Len() != 1 {
		return false
	}
	v := given.Index(0)
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v.IsValid() && v.Type() == model
}

// assignsOfStatement and attrsOfStatement are where GORM keeps what Assign and Attrs were given.
var assignsOfStatement, attrsOfStatement = placeInStatement("assigns"), placeInStatement("attrs")

func placeInStatement(name string) []int {
	field, _ := reflect.TypeFor[gorm.Statement]().FieldByName(name)
	return field.Index
}

// IsGivenMore reports whether Assign or Attrs was given something.
func IsGivenMore(stmt *gorm.Statement) bool {
	v := reflect.ValueOf(stmt).Elem()
	return assignsOfStatement != nil && v.FieldByIndex(assignsOfStatement).Len() > 0 || attrsOfStatement != nil && v.FieldByIndex(attrsOfStatement).Len() > 0
}

// InGivenMore names the clauses of each db among it, and reports whether one has an error, or scopes that have not run.
func InGivenMore(stmt *gorm.Statement) (clauses []string, failed, scopes bool) {
	for _, place := range [][]int{assignsOfStatement, attrsOfStatement} {
		if place == nil {
			continue
		}
		given := reflect.ValueOf(stmt).Elem().FieldByIndex(place)
		for i := range given.Len() {
			db := given.Index(i).Elem()
			if !db.IsValid() || db.Type() != reflect.TypeFor[*gorm.DB]() || db.IsNil() {
				continue
			}
			failed = failed || !db.Elem().FieldByName("Error").IsNil()
			of := db.Elem().FieldByName("Statement")
			if of.IsNil() {
				continue
			}
			for _, name := range of.Elem().FieldByName("Clauses").MapKeys() {
				clauses = append(clauses, name.String())
			}
			scopes = scopes || scopesOfStatement != nil && of.Elem().FieldByIndex(scopesOfStatement).Len() > 0
		}
	}
	return clauses, failed, scopes
}

// IsSession reports whether each call on the db makes a new statement, so that nothing stays in this one.
func IsSession(db *gorm.DB) bool {
	return cloneOfDB != nil && reflect.ValueOf(db).Elem().FieldByIndex(cloneOfDB).Int() > 0
}

// Unending returns the error of a write in such a session, which a scope has returned: what GORM's callbacks leave for each other is lost
// there, and nobody ends the transaction that one of them begins.
func Unending(db *gorm.DB) error {
	if !IsSession(db) || db.SkipDefaultTransaction || db.DryRun || Transaction(db.Statement) != nil {
		return nil
	}
	return fmt.Errorf("gormlock: %s: a scope returned a session (Session, Debug, WithContext), in which GORM never ends the transaction of a write: "+
		"let the scope return the db that it is given, with Where and the like, and make the session before Scopes", TableName(db.Statement))
}

// cloneOfDB is where GORM keeps that.
var cloneOfDB = func() []int {
	field, _ := reflect.TypeFor[gorm.DB]().FieldByName("clone")
	return field.Index
}()

// AddScope gives the statement a scope, whatever db a scope of the caller's made of its own.
func AddScope(stmt *gorm.Statement, f func(*gorm.DB) *gorm.DB) {
	(&gorm.DB{Config: stmt.DB.Config, Statement: stmt}).Scopes(f)
}

// LastScope is a scope that runs after all others, those too that a scope adds.
func LastScope(run func(*gorm.DB)) func(*gorm.DB) *gorm.DB {
	var last func(*gorm.DB) *gorm.DB
	last = func(db *gorm.DB) *gorm.DB {
		if scopesOfStatement != nil && HasScopes(db.Statement) {
			return db.Scopes(last)
		}
		run(db)
		return db
	}
	return last
}

// Beside is a db with what db carries, to make another statement of. In a hook, where db is a new session on the hook's
// own statement, Session alone would carry on with that one.
func Beside(db *gorm.DB) *gorm.DB {
	if own := db.Scopes(); own != db {
		return own
	}
	return db.Session(&gorm.Session{})
}

// Session is db.Session, except that a session which makes new statements goes on to do so, as in GORM's own Transaction. In a hook GORM's
// Session, and WithContext, would take up the hook's own statement: its table, its conditions, its clauses.
func Session(db *gorm.DB, config gorm.Session) *gorm.DB {
	config.NewDB = config.NewDB || cloneOfDB != nil && reflect.ValueOf(db).Elem().FieldByIndex(cloneOfDB).Int() == 1
	return db.Session(&config)
}
