// Package statement reads a GORM statement: its keys, its table, its transaction, whether it is a savepoint or a
// sub-query. All code that depends on GORM's internals or on the call stack is here.
package statement
