// Package gormlock has the names of the root package that programs with handlers need.
package gormlock

import (
	"github.com/gormlock/gormlock/lockkey"
	"gorm.io/gorm"
)

// TxOption changes a transaction.
type TxOption interface{ apply() }

// Key returns a key.
func Key(parts ...any) lockkey.Key { return lockkey.Key{} }

// Transaction runs fn in a transaction.
func Transaction(db *gorm.DB, fn func(tx *gorm.DB) error, opts ...TxOption) error { return nil }

// Locking begins with a lock.
func Locking(key lockkey.Key) TxOption { return nil }

// Attempts runs fn again.
func Attempts(n int) TxOption { return nil }
