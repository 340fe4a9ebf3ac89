package hibernate

import (
	"context"

	"github.com/gormlock/gormlock/lease"
	"gorm.io/gorm"
)

type Account struct {
	ID, Balance int64
	Version     int32 `gormlock:"version,hibernate"`
}

func fn(*gorm.DB) error { return nil }

func charge(*gorm.DB) (string, error) { return "", nil }

func job(context.Context) error { return nil }

var (
	account, before Account
	accounts, lines []Account
	dto             struct{ Version int32 }
	id, name        string
	held            *lease.Lease
)
