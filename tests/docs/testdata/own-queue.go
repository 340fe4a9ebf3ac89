package ownqueue

import (
	"time"

	"github.com/gormlock/gormlock/tests/docs/runner"
)

type Job struct {
	ID           int64
	Queue        string
	Payload      string
	State        string `gorm:"default:ready"`
	Attempts     int
	MaxAttempts  int `gorm:"default:5"`
	ClaimedBy    string
	ClaimedUntil *time.Time `gormlock:"unversioned"`
	LastError    string
	Version      int64 `gorm:"default:1" gormlock:"version"`
}

type Receipt struct{ JobID int64 }

var (
	worker = "worker-1"
	job    Job
	jobs   []Job
)

func setup(world *runner.World) {
	world.DocumentsTables()
	world.Tables(&Receipt{})
	soon, past := time.Now().Add(time.Minute), time.Now().Add(-time.Minute)
	job, jobs = Job{ClaimedBy: worker, ClaimedUntil: &soon}, []Job{{Queue: "mail"}, {Queue: "mail"}}
	world.Rows(&job, &Job{}, &Job{Attempts: 5, ClaimedUntil: &past})
}
