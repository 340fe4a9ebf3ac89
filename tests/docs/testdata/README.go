package readme

import (
	"database/sql"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/sessionlock"
)

type Invoice struct{ ID int64 }

type Account struct {
	ID, Balance int64
	Version     int64 `gormlock:"version"`
}

type Job struct {
	ID    int64
	State string
}

var (
	id       string
	invoice  Invoice
	lines    []Invoice
	account  Account
	pair     []Account
	jobs     []Job
	document Account
	m        *sessionlock.Manager
	pool     *sql.DB
	leases   *lease.Manager
	lock     func(*gorm.DB) *gorm.DB
)
