package work

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/pgtime"
	"github.com/gormlock/gormlock/internal/sound"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/xact"
)

// Job makes a model a job. Embed it, like gorm.Model. The worker renews ClaimedUntil while a handler runs, so Save and
// Updates of a struct do not write it. To write it, name it in Select, Update or a map.
//
// While a job runs, the server refuses a write of a struct, by its key, that changes the job's State or ClaimedBy, even with
// [gormlock.IgnoreVersion]: the job would be handed out again. A struct cannot set State to running either, because only a worker does that. The
// error is [gormlock.ErrOption], and says what to do instead. An update by conditions alone, as an operator makes it, is executed. So is SQL. A
// State that no worker knows is an error, except in SQL.
type Job struct {
	ID           int64      `gorm:"primaryKey"`
	Queue        string     `gorm:"not null;default:default"` // Default: "default"
	State        string     `gorm:"not null;default:ready"`   // ready, later, running, done or dead: kept by this package
	Priority     int        `gorm:"not null;default:0"`       // higher ones come first
	RunAt        time.Time  `gorm:"not null;default:now()"`   // the job begins no earlier. Default: at once
	Attempts     int        `gorm:"not null;default:0"`       // how many have begun, including the current one
	MaxAttempts  int        `gorm:"not null;default:20"`      // Default: 20
	ClaimedBy    string     `gorm:"not null;default:''"`      // the process that works on it or did so last, and the claim
	ClaimedUntil *time.Time `gormlock:"unversioned,renewed"`  // the end of the lease
	LastError    string     `gorm:"not null;default:''"`
	Version      int64      `gorm:"not null;default:1" gormlock:"version"`
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// The states of a job.
const (
	ready   = "ready"
	later   = "later"
	running = "running"
	done    = "done"
	dead    = "dead"
)

type isJob interface{ job() *Job }

func (j *Job) job() *Job { return j }

// jobIn returns the Job in a model.
func jobIn(model any) (*Job, error) {
	if v := reflect.ValueOf(model); model == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, optionError("the job is nil")
	}
	if has, ok := model.(isJob); ok {
		if j := has.job(); j != nil {
			return j, nil
		}
		return nil, optionError("%T embeds a pointer to Job: embed work.Job itself", model)
	}
	return nil, optionError("%T has no Job: embed work.Job in it, and give a pointer", model)
}

// Enqueue inserts jobs with tx. They exist if and only if tx commits, and workers hear of them then. A job with a RunAt
// in the future waits until then. If no transaction is open, Enqueue begins one, and inserts all jobs or none. Conditions on tx have
// no effect, as in GORM's Create. An upsert may write your own columns, but no column that workers maintain. A Select or Omit may
// leave out what the jobs do not use, such as a zero Priority.
func Enqueue[T any](tx *gorm.DB, jobs ...*T) error {
	if err := install.Usable(tx); err != nil {
		return err
	}
	if len(jobs) == 0 {
		return xact.AcquireAsked(tx)
	}
	of, err := tableOf(tx, jobs[0])
	if err != nil {
		return err
	}
	now, heard, said := time.Now(), hints{}, sayings(0)
	for _, each := range jobs {
		j, err := jobIn(each)
		if err != nil {
			return err
		}
		if j.State != "" && j.State != ready && j.State != later {
			return optionError("enqueue: the job's state is %q: leave State, ID and Version unset", j.State)
		}
		if j.Version != 0 && j.Version != 1 {
			return optionError("enqueue: the job's Version is %d: leave State, ID and Version unset", j.Version)
		}
		if j.Attempts < 0 || j.Attempts > math.MaxInt32 {
			return optionError("enqueue: the job's Attempts are %d, and each attempt counts one more: leave it unset", j.Attempts)
		}
		if err := pgtime.Check(j.RunAt); err != nil {
			return optionError("enqueue: the job's RunAt: %w", err)
		}
		if j.State = ready; j.RunAt.After(now) {
			j.State = later
		}
		if j.Queue == "" {
			j.Queue = "default"
		}
		said.add(j)
	}
	if tx, err = insertsOnly(tx, of, said); err != nil {
		return err
	}
	if err := insert(tx, jobs); err != nil {
		return err
	}
	for _, each := range jobs {
		j := any(each).(isJob).job() //nolint:forcetypeassert // checked above
		heard.add(level{j.Queue, j.Priority}, j.ID, j.State == later)
	}
	announceAfter(tx, of, heard)
	return nil
}

// insert inserts all jobs or none: if no transaction is open, it begins one, even with SkipDefaultTransaction.
func insert[T any](tx *gorm.DB, jobs []*T) error {
	create := func(tx *gorm.DB) error {
		if len(jobs) == 1 {
			return tx.Create(jobs[0]).Error
		}
		return tx.CreateInBatches(jobs, 500).Error
	}
	if statement.Transaction(tx.Statement) == nil {
		return tx.Transaction(create)
	}
	return create(tx)
}

// announceAfter announces when the transaction of tx has committed, or now if there is none.
func announceAfter(tx *gorm.DB, of *table, heard hints) {
	db := journal.Database(tx.Statement)
	if db == nil {
		return
	}
	if statement.Transaction(tx.Statement) == nil {
		announce(db, of.quoted, heard)
		return
	}
	journal.AfterCommit(tx.Statement, func() { announce(db, of.quoted, heard) })
}

// Complete marks the handler's job as done, in the transaction of its effect: both are stored, or neither. It returns
// [gormlock.ErrStale] if the job was taken over, or conditions on tx do not match it. If the transaction is rolled back and
// the handler returns nil, the attempt has failed.
func Complete[T any](tx *gorm.DB, job *T) error {
	if err := install.Usable(tx); err != nil {
		return err
	}
	j, err := jobIn(job)
	if err != nil {
		return err
	}
	of, err := tableOf(tx, job)
	if err != nil {
		return err
	}
	writes, err := writesState(tx, of)
	if err != nil {
		return err
	}
	a, others := attemptOf(tx, of, j)
	if a != nil && !others && !tx.DryRun {
		a.completing.Store(true)
	}
	was := *j
	written := writes.Set(completes, true).Model(job).Where(clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: of.column("State")}, Value: running}).
		Updates(map[string]any{"State": done, "ClaimedUntil": nil})
	if sqlstate.Of(written.Error) == sqlstate.SerializationFailure {
		return fmt.Errorf("%w: the snapshot of the transaction is older than the row, as it is once the worker has renewed the lease, after each third of it: use READ COMMITTED, end the transaction sooner, or give the worker a longer Lease", written.Error)
	}
	if written.Error != nil {
		return written.Error
	}
	if tx.DryRun {
		*j = was
		return nil
	}
	if written.RowsAffected == 0 {
		*j = was
		return fmt.Errorf("%w: %s id=%d is not running any more: it was taken over or completed", gormlock.ErrStale, of.name, was.ID)
	}
	if a != nil {
		if statement.Transaction(tx.Statement) == nil {
			a.completed.Store(true)
			return nil
		}
		a.keep(tx)
	}
	return nil
}

// ErrTakenOver is the cause of a handler's context when it ends because the job's lease has ended and another worker may
// have the job. If the handler returns nil after that, the job is not completed.
var ErrTakenOver = errors.New("gormlock: work: the job was taken over")

var (
	errGrace      = errors.New("gormlock: work: the worker ends, and its Grace is over")
	errLate       = errors.New("the lease of the job ended before its handler did: no renewal was confirmed in time, because the server did not answer or a transaction had locked the row")
	errNotBegun   = errors.New("the job is not that of this process any more, or its row is locked: its handler has not begun")
	errRolledBack = errors.New("the transaction in which the handler called Complete was not committed")
)

// Later makes an error for a handler to return: its job is tried again in d, and this attempt does not count. The
// cause, which may be nil, is kept in LastError.
func Later(d time.Duration, cause error) error { return &laterError{max(d, 0), sound.Error(cause)} }

type laterError struct {
	in    time.Duration
	cause error
}

func (e *laterError) Unwrap() error { return e.cause }

func (e *laterError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("again in %s", e.in)
	}
	return e.cause.Error()
}

// Dead makes an error for a handler to return: its job is never tried again. The cause is kept in LastError.
func Dead(cause error) error { return &deadError{sound.Error(cause)} }

type deadError struct{ cause error }

func (e *deadError) Unwrap() error { return e.cause }

func (e *deadError) Error() string {
	if e.cause == nil {
		return "never again"
	}
	return e.cause.Error()
}
