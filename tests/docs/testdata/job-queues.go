package jobqueues

import "time"

type Job struct {
	ID           int64
	State        string
	ClaimedUntil *time.Time `gormlock:"unversioned"`
	Version      int64      `gormlock:"version"`
}

type OutboxEvent struct{ ID int64 }

type Receipt struct{ JobID int64 }

func publish([]OutboxEvent) error { return nil }

var (
	worker string
	id     int64
	job    Job
	jobs   []Job
)
