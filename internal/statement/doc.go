// Package statement reads what a GORM statement says: its keys, its table, its transaction, whether it is a savepoint,
// whose sub-query it is. Every look at GORM's internals and at the call stack stands here.
package statement
