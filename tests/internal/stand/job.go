package stand

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// Job is a row to claim.
type Job struct {
	ID        int64
	State     string
	Priority  int
	Attempts  int
	QueueID   int64
	Queue     *Queue
	Steps     []Step
	UpdatedAt time.Time
	DeletedAt gorm.DeletedAt
	Fixed     string `gorm:"<-:create"`
	Found     int    `gorm:"-"`
}

// AfterFind counts how often the row was read, and fails if its priority is 99.
func (j *Job) AfterFind(*gorm.DB) error {
	j.Found++
	if j.Priority == 99 {
		return ErrUnwelcome
	}
	return nil
}

// ErrUnwelcome is the error of a Job whose priority is 99.
var ErrUnwelcome = errors.New("this job is unwelcome")

// BeforeUpdate must not run: a claim has no rows to run it on.
func (j *Job) BeforeUpdate(*gorm.DB) error { return errors.New("BeforeUpdate ran") }

// Queue is what a Job belongs to.
type Queue struct {
	ID     int64
	Name   string
	Paused bool
}

// Step is a child of a Job.
type Step struct {
	ID    int64
	JobID int64
}

// Running is what a claim sets.
var Running = map[string]any{"state": "running", "attempts": gorm.Expr("attempts + 1")}

// Ready narrows a claim to jobs that are ready, the urgent ones first.
func Ready(q *gorm.DB) *gorm.DB {
	return q.Where("state = ?", "ready").Order("priority DESC, jobs.id")
}

// Jobs opens a schema with n ready jobs, of priority id % 3, in queue 1, with a step each, and one that was deleted.
func Jobs(t testing.TB, n int, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	db := Open(t, opts...)
	if err := db.AutoMigrate(&Queue{}, &Job{}, &Step{}); err != nil {
		t.Fatal(err)
	}
	MustDo(t, db.Create(&[]Queue{{ID: 1, Name: "one"}, {ID: 2, Name: "two", Paused: true}}))
	MustDo(t, db.Exec(`insert into jobs (id, state, priority, attempts, queue_id, fixed, deleted_at)
		select i, 'ready', i % 3, 0, 1, '', case when i > ? then now() end from generate_series(1, ?) i`, n, n+1))
	MustDo(t, db.Exec("insert into steps (id, job_id) select i, i from generate_series(1, ?) i", n))
	return db
}

// JobIDs are the ids in the order of the rows.
func JobIDs(rows []Job) []int64 {
	ids := []int64{}
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids
}
