package rails

import (
	"context"
	"time"

	"gorm.io/gorm"
)

type Account struct {
	ID, Balance int64
	State       string
	LockVersion int64 `gormlock:"version,rails"`
	UpdatedAt   time.Time
}

func fn(*gorm.DB) error { return nil }

func charge(*gorm.DB) (string, error) { return "", nil }

func job(context.Context) error { return nil }

var (
	account              Account
	accounts, pair       []Account
	form                 struct{ LockVersion int64 }
	id                   int64
	name, jobID, request string
	concurrencyKey       string
)
