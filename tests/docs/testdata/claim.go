package claim

import (
	"time"

	"github.com/gormlock/gormlock/tests/docs/runner"
)

type Job struct {
	ID           int64
	Priority     int
	State        string    `gorm:"default:ready"`
	RunAt        time.Time `gorm:"default:now()"`
	Attempts     int
	MaxAttempts  int `gorm:"default:5"`
	ClaimedBy    string
	ClaimedUntil *time.Time `gormlock:"unversioned"`
	Version      int64      `gorm:"default:1" gormlock:"version"`
}

type OutboxEvent struct {
	ID     int64
	SentAt *time.Time
}

func publish([]OutboxEvent) error { return nil }

var (
	worker = "worker-1"
	id     int64
)

func setup(world *runner.World) {
	world.Tables(&Job{}, &OutboxEvent{})
	world.Rows(&Job{}, &OutboxEvent{})
}
