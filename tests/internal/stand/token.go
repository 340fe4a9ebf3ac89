package stand

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/lockkey"
)

// Issue gives the next token of the key.
func Issue(t testing.TB, db *gorm.DB, parts ...any) fence.Token {
	t.Helper()
	pool, err := db.DB()
	Must(t, err)
	token, err := fence.Issue(t.Context(), pool, lockkey.Of(parts...))
	Must(t, err)
	return token
}

// With lets db write by tokens of its context.
func With(db *gorm.DB, tokens ...fence.Token) *gorm.DB {
	return db.WithContext(fence.NewContext(context.Background(), tokens...))
}
