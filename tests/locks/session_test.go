package locks_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// In a session that a scope returns, GORM ends no transaction: the lock would be held until the connection ends.
func TestWithXactLock_inASessionOfAScope(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	if err := db.AutoMigrate(&widgetMaker{}, &widget{}); err != nil {
		t.Fatal(err)
	}
	key := pgtest.Key(t)
	session := func(tx *gorm.DB) *gorm.DB { return tx.WithContext(t.Context()) }
	err := db.Scopes(gormlock.WithXactLock(key), session).Create(&widget{Name: "a"}).Error
	if err == nil || !strings.Contains(err.Error(), "returned a session") {
		t.Errorf("%v", err)
	}
	pgtest.Observe(t, pgtest.DSN(t)).AssertFree(t, key)
}
