package stand

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// Fenced is [Versioned] with the table of tokens.
func Fenced(t testing.TB, models []any, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	db := Versioned(t, models, opts...)
	MigrateFence(t, db)
	return db
}

// MigrateFence makes the table of tokens.
func MigrateFence(t testing.TB, db *gorm.DB) {
	t.Helper()
	pool, err := db.DB()
	Must(t, err)
	Must(t, fence.Migrate(t.Context(), pool))
}

// Issue issues the next token of the key.
func Issue(t testing.TB, db *gorm.DB, parts ...any) fence.Token {
	t.Helper()
	pool, err := db.DB()
	Must(t, err)
	token, err := fence.Issue(t.Context(), pool, lockkey.Of(parts...))
	Must(t, err)
	return token
}

// With is db with tokens in its context.
func With(db *gorm.DB, tokens ...fence.Token) *gorm.DB {
	return db.WithContext(fence.NewContext(context.Background(), tokens...))
}
