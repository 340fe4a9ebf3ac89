package overview

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/sessionlock"
	"github.com/gormlock/gormlock/tests/docs/runner"
)

type Invoice struct{ ID int64 }

type Account struct {
	ID, Balance int64
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Job struct {
	ID, Priority int64
	State        string
}

type Document struct {
	ID      int64
	Body    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Report struct {
	ID    int64
	Body  string
	Fence int64 `gorm:"not null" gormlock:"fence,key=report"`
}

var (
	id       = "4711"
	invoice  Invoice
	lines    []Invoice
	account  Account
	pair     []Account
	jobs     []Job
	document Document
	m        *sessionlock.Manager
	lock     func(*gorm.DB) *gorm.DB
	t        *testing.T
	pgxPool  *pgxpool.Pool
)

func setup(world *runner.World) {
	world.Tables(&Invoice{}, &Account{}, &Job{}, &Document{}, &Report{})
	invoice, account, document = Invoice{ID: 42}, Account{ID: 1, Balance: 100}, Document{ID: 1, Body: "old", Version: 7}
	pair = []Account{{ID: 2}, {ID: 3}}
	world.Rows(&account, &pair, &document, &[]Job{{State: "ready"}, {State: "ready"}})
	runner.Check(db.Clauses(gormlock.IgnoreFence()).Create(&Report{ID: 42}))
	lock, t = gormlock.WithXactLock(key), world.T
	pgxPool, err = pgxpool.New(ctx, dsn)
	runner.Check(err)
	world.Defer(func() error { pgxPool.Close(); return nil })
}
