package testing

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/lockkey"
)

type Account struct {
	ID, Balance int64
	Version     int64 `gormlock:"version"`
}

func Withdraw(db *gorm.DB, id, amount int64) error { return nil }

func openDB(t *testing.T) *gorm.DB { return db }

func accountKey(id int64) lockkey.Key { return key }

var t *testing.T
