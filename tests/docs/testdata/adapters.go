package adapters

import (
	"context"
	"database/sql"
	"time"

	"github.com/gormlock/gormlock/lease"
)

// What the tools look like from here; tests/adapters has the real ones.
var (
	migrator   migrate
	goose      gooseTool
	gocron     gocronTool
	cron       cronTool
	scheduler  asynq
	migrations any
)

type migrate struct{}

func (migrate) Up() error { return nil }

type gooseTool struct{ DialectPostgres string }

type sessionLocker interface {
	SessionLock(ctx context.Context, conn *sql.Conn) error
	SessionUnlock(ctx context.Context, conn *sql.Conn) error
}

func (gooseTool) WithSessionLocker(l sessionLocker) sessionLocker { return l }

func (gooseTool) NewProvider(_ string, pool *sql.DB, _ any, l sessionLocker) (any, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := l.SessionLock(ctx, conn); err != nil {
		return nil, err
	}
	return nil, l.SessionUnlock(ctx, conn)
}

type gocronTool struct{}

type elector interface {
	IsLeader(ctx context.Context) error
}

func (gocronTool) WithDistributedElector(e elector) elector { return e }

func (gocronTool) NewScheduler(e elector) (any, error) { return nil, e.IsLeader(ctx) }

type cronTool struct{}

func (cronTool) ParseStandard(string) (lease.Schedule, error) { return lease.Interval(time.Hour), nil }

func report(context.Context, time.Time) error { return nil }

type asynq struct{}

func (asynq) Start() error { return nil }

func (asynq) Shutdown() {}
