package gormlocktest

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// AssertInstalled fails the test if gormlock is not installed on db. Without it every lock is an error, but the tags of
// models are just text: a struct with a version or a fence is written as if it had none, without an error.
func AssertInstalled(t testing.TB, db *gorm.DB) {
	t.Helper()
	if db == nil || db.Config == nil {
		t.Fatal("a nil *gorm.DB")
	}
	if _, installed := db.Plugins[gormlock.New().Name()].(*gormlock.Plugin); !installed {
		t.Error("gormlock is not installed on this db, so no version and no fence of a model is checked: call db.Use(gormlock.New())")
	}
}
