package tests

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// tortureJob is the environment variable that makes the test binary one process of the torture.
const tortureJob = "GORMLOCK_TORTURE_JOB"

// job is what a process of the torture is told.
type job struct {
	DSN         string
	Name        string // of the process, the first part of its operations' ids
	Key         int64
	Goroutines  int
	For         time.Duration
	Unlocked    bool // the control: nobody takes the lock
	PrepareStmt bool
}

// result is what it reports: how each of its operations ended, by id, and what it found wrong.
type result struct {
	Ended map[string]ending
	Doors map[string]int // operations that committed, by door
	Wrong []string
}

// ending is what the caller of an operation knows of it.
type ending string

const (
	committed ending = "committed" // nil
	refused   ending = "refused"   // an error from before the commit was sent
	unknown   ending = "unknown"   // an error from the commit, or from a call that commits
)

type counter struct {
	ID int64
	N  int64
}

// increment is the audit: one row for each addition, in the same transaction.
type increment struct {
	ID string
}

// AfterCreate adds in the implicit transaction of the create, where the ctx asks for it.
func (i *increment) AfterCreate(tx *gorm.DB) error {
	if tx.Statement.Context.Value(addInHook{}) == nil {
		return nil
	}
	return add(tx)
}

type addInHook struct{}

// add is the read-modify-write that the lock protects: nothing in it does.
func add(tx *gorm.DB) error {
	var c counter
	if err := tx.First(&c, 1).Error; err != nil {
		return err
	}
	return tx.Model(&c).UpdateColumn("n", c.N+1).Error
}

// runTortureJob is the process: its exit code is 0 when it could report.
func runTortureJob() int {
	var j job
	err := json.Unmarshal([]byte(os.Getenv(tortureJob)), &j)
	if err == nil {
		var r result
		if r, err = j.run(); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(r)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (j job) run() (result, error) {
	// No ping: its backend may be the one that is killed.
	config := &gorm.Config{Logger: logger.Discard, PrepareStmt: j.PrepareStmt, DisableAutomaticPing: true}
	db, err := gorm.Open(postgres.Open(j.DSN), config)
	if err != nil {
		return result{}, err
	}
	pool, err := db.DB()
	if err != nil {
		return result{}, err
	}
	pool.SetMaxOpenConns(j.Goroutines)
	pool.SetMaxIdleConns(j.Goroutines)
	plugin := gormlock.New()
	if err := db.Use(plugin); err != nil {
		return result{}, err
	}
	r := result{Ended: map[string]ending{}, Doors: map[string]int{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	until := time.Now().Add(j.For)
	for g := range j.Goroutines {
		all.Go(func() {
			for n := 0; time.Now().Before(until); n++ {
				id := fmt.Sprintf("%s/%d/%d", j.Name, g, n)
				by, end, wrong := j.operation(db, pool, id)
				mu.Lock()
				r.Ended[id] = end
				if end == committed {
					r.Doors[by]++
				}
				if wrong != nil {
					r.Wrong = append(r.Wrong, fmt.Sprintf("%s by %s: %v", id, by, wrong))
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if busy := pool.Stats().InUse; busy != 0 {
		r.Wrong = append(r.Wrong, fmt.Sprintf("%d connections are in use after the end", busy))
	}
	if err := errors.Join(plugin.Close(), pool.Close()); err != nil {
		return result{}, err
	}
	if err := pgtest.LeftGoroutines(); err != nil {
		r.Wrong = append(r.Wrong, err.Error())
	}
	return r, nil
}

// operation adds 1 by a door picked at random, perhaps under a ctx that ends somewhere on the way. wrong is an error
// that neither the end of the ctx nor the death of a backend explains.
func (j job) operation(db *gorm.DB, pool *sql.DB, id string) (by string, end ending, wrong error) {
	within := time.Minute
	if rand.N(5) == 0 {
		within = rand.N(20 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	d := unlocked
	if !j.Unlocked {
		d = doors[rand.N(len(doors))]
	}
	o := &operation{ctx: ctx, db: db.WithContext(ctx), pool: pool, key: lockkey.Int64(j.Key), id: id}
	err := d.run(o)
	end = refused
	switch {
	case err == nil:
		return d.name, committed, nil
	case o.worked:
		end = unknown
	}
	if explained(ctx, err) {
		err = nil
	}
	return d.name, end, err
}

// explained reports whether err is the end of ctx, or that of a backend. Under the lock there is nothing to lose to
// another, so a serialization failure is neither.
func explained(ctx context.Context, err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		deadline, _ := ctx.Deadline() // a connection's deadline may pass a moment before the ctx knows
		return !time.Now().Before(deadline)
	}
	if errors.Is(err, sql.ErrTxDone) {
		return ctx.Err() != nil // database/sql rolled a plain *sql.Tx back, and forgot why
	}
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState() == "57P01" // terminated by an administrator
	}
	var broken net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.As(err, &broken)
}

// operation is one addition. Its work may run several times, as long as one of them at most commits.
type operation struct {
	ctx    context.Context
	db     *gorm.DB
	pool   *sql.DB
	key    lockkey.Key
	id     string
	worked bool // the work was done to its end at least once: a commit may have been sent
}

func (o *operation) work(tx *gorm.DB) error {
	o.worked = false
	if err := tx.Create(&increment{ID: o.id}).Error; err != nil {
		return err
	}
	if err := add(tx); err != nil {
		return err
	}
	o.worked = true
	return nil
}

type door struct {
	name string
	run  func(*operation) error
}

var unlocked = door{"no lock", func(o *operation) error { return o.db.Transaction(o.work) }}

// doors are the ways to the lock. Those that give up after a while are run again by who uses them.
var doors = []door{
	{"scope", func(o *operation) error {
		return o.db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Scopes(gormlock.WithXactLock(o.key)).First(&counter{}, 1).Error; err != nil {
				return err
			}
			return o.work(tx)
		})
	}},
	{"scope on a create", func(o *operation) error {
		return o.db.Transaction(func(tx *gorm.DB) error {
			o.worked = false
			if err := tx.Scopes(gormlock.WithXactLock(o.key)).Create(&increment{ID: o.id}).Error; err != nil {
				return err
			}
			if err := add(tx); err != nil {
				return err
			}
			o.worked = true
			return nil
		})
	}},
	{"scope on a create of its own", func(o *operation) error {
		ctx := context.WithValue(o.ctx, addInHook{}, true)
		o.worked = true // the commit is inside of the call
		return o.db.WithContext(ctx).Scopes(gormlock.WithXactLock(o.key)).Create(&increment{ID: o.id}).Error
	}},
	{"clause", func(o *operation) error {
		return o.db.Transaction(func(tx *gorm.DB) error {
			if _, err := gorm.G[counter](tx, gormlock.XactLock(o.key)).First(o.ctx); err != nil {
				return err
			}
			return o.work(tx)
		})
	}},
	{"Transaction", func(o *operation) error {
		return gormlock.Transaction(o.db, o.work, gormlock.Locking(o.key))
	}},
	{"Transaction, Timeout, Attempts", func(o *operation) error {
		return gormlock.Transaction(o.db, o.work, gormlock.Locking(o.key, gormlock.Timeout(5*time.Millisecond)), gormlock.Attempts(1000), untilGranted)
	}},
	{"Transaction at REPEATABLE READ", func(o *operation) error {
		return gormlock.Transaction(o.db, o.work, gormlock.Locking(o.key), gormlock.Isolation(sql.LevelRepeatableRead))
	}},
	{"Transaction at SERIALIZABLE, Try, Attempts", func(o *operation) error {
		return gormlock.Transaction(o.db, o.work, gormlock.Locking(o.key, gormlock.Try()),
			gormlock.Isolation(sql.LevelSerializable), gormlock.Attempts(1000), untilGranted)
	}},
	{"AcquireXactLock, Try until it is there", func(o *operation) error {
		return o.db.Transaction(func(tx *gorm.DB) error {
			return o.again(tx, func() error { return gormlock.AcquireXactLock(tx, []lockkey.Key{o.key}, gormlock.Try()) })
		})
	}},
	{"AcquireXactLock, Timeout until it is there", func(o *operation) error {
		return o.db.Transaction(func(tx *gorm.DB) error {
			return o.again(tx, func() error {
				return gormlock.AcquireXactLock(tx, []lockkey.Key{o.key}, gormlock.Timeout(3*time.Millisecond))
			})
		})
	}},
	{"AcquireXactLock in a nested transaction", func(o *operation) error {
		return o.db.Transaction(func(tx *gorm.DB) error {
			return tx.Transaction(func(inner *gorm.DB) error {
				if err := gormlock.AcquireXactLock(inner, []lockkey.Key{o.key}); err != nil {
					return err
				}
				return o.work(inner)
			})
		})
	}},
	{"advisory.Acquire on a *sql.Tx", func(o *operation) error {
		ctx := o.ctx
		tx, err := o.pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if err := advisory.Acquire(ctx, tx, []lockkey.Key{o.key}); err != nil {
			return err
		}
		var n int64
		if err := tx.QueryRowContext(ctx, "select n from counters where id = 1").Scan(&n); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "insert into increments values ($1)", o.id); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "update counters set n = $1 where id = 1", n+1); err != nil {
			return err
		}
		o.worked = true
		return tx.Commit()
	}},
}

// again asks for the lock in the same transaction until it is there, then works.
func (o *operation) again(tx *gorm.DB, acquire func() error) error {
	for {
		err := acquire()
		switch {
		case err == nil:
			return o.work(tx)
		case !errors.Is(err, gormlock.ErrNotAcquired) && !errors.Is(err, gormlock.ErrLockTimeout):
			return err
		}
		select {
		case <-time.After(rand.N(2 * time.Millisecond)):
		case <-o.ctx.Done():
			return o.ctx.Err()
		}
	}
}

// untilGranted repeats what was not granted too.
var untilGranted = gormlock.RetryIf(func(err error) bool {
	return gormlock.IsRetryable(err) || errors.Is(err, gormlock.ErrNotAcquired) || errors.Is(err, gormlock.ErrLockTimeout)
})
