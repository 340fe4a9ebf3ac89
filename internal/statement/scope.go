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

// scopesOfStatement is the field in which GORM keeps scopes.
var scopesOfStatement = placeInStatement("scopes")

// IsAssigned reports whether Assign has exactly one argument, a struct of this type. FirstOrCreate makes a map of it.
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

// assignsOfStatement and attrsOfStatement are the fields in which GORM keeps the arguments of Assign and Attrs.
var assignsOfStatement, attrsOfStatement = placeInStatement("assigns"), placeInStatement("attrs")

func placeInStatement(name string) []int {
	field, _ := reflect.TypeFor[gorm.Statement]().FieldByName(name)
	return field.Index
}

// IsGivenMore reports whether Assign or Attrs has arguments.
func IsGivenMore(stmt *gorm.Statement) bool {
	v := reflect.ValueOf(stmt).Elem()
	return assignsOfStatement != nil && v.FieldByIndex(assignsOfStatement).Len() > 0 || attrsOfStatement != nil && v.FieldByIndex(attrsOfStatement).Len() > 0
}

// InGivenMore names the clauses of each db among the arguments of Assign and Attrs, and reports whether one has an error, or scopes that have not run.
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

// IsSession reports whether each call on the db makes a new statement, so that this db's statement stays unchanged.
func IsSession(db *gorm.DB) bool {
	return cloneOfDB != nil && reflect.ValueOf(db).Elem().FieldByIndex(cloneOfDB).Int() > 0
}

// Unending returns the error of a write in a session that a scope has returned. GORM's callbacks keep data for each other in the statement, which is
// lost in a session. So the transaction that one callback begins would never be ended.
func Unending(db *gorm.DB) error {
	if !IsSession(db) || db.SkipDefaultTransaction || db.DryRun || Transaction(db.Statement) != nil {
		return nil
	}
	return fmt.Errorf("gormlock: %s: a scope returned a session (Session, Debug, WithContext), in which GORM never ends the transaction of a write: "+
		"let the scope return the db that it is given, with Where and the like, and make the session before Scopes", TableName(db.Statement))
}

// cloneOfDB is the field of a db that says whether each call makes a new statement.
var cloneOfDB = func() []int {
	field, _ := reflect.TypeFor[gorm.DB]().FieldByName("clone")
	return field.Index
}()

// AddScope adds a scope to the statement itself, even if a scope of the caller has returned another db.
func AddScope(stmt *gorm.Statement, f func(*gorm.DB) *gorm.DB) {
	(&gorm.DB{Config: stmt.DB.Config, Statement: stmt}).Scopes(f)
}

// LastScope is a scope that runs after all others, even after scopes that a scope adds.
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

// Beside is a db for another statement, with everything that db carries. In a hook, db is a new session on the hook's
// own statement, and Session alone would continue that statement.
func Beside(db *gorm.DB) *gorm.DB {
	if own := db.Scopes(); own != db {
		return own
	}
	return db.Session(&gorm.Session{})
}

// Session is db.Session, with one difference: if db makes new statements, the result does too, as in GORM's own Transaction. In a hook, GORM's
// Session and WithContext would continue the hook's own statement, with its table, its conditions and its clauses.
func Session(db *gorm.DB, config gorm.Session) *gorm.DB {
	config.NewDB = config.NewDB || cloneOfDB != nil && reflect.ValueOf(db).Elem().FieldByIndex(cloneOfDB).Int() == 1
	return db.Session(&config)
}
