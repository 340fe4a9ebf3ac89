package work_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

var errUndo = errors.New("roll back")

// structs are ways to get a struct of the handler's job.
var structs = map[string]func(tx *gorm.DB, m *Mail) (*Mail, error){
	"given": func(_ *gorm.DB, m *Mail) (*Mail, error) { return m, nil },
	"read": func(tx *gorm.DB, m *Mail) (*Mail, error) {
		var own Mail
		return &own, tx.First(&own, m.ID).Error
	},
	"read among others": func(tx *gorm.DB, m *Mail) (*Mail, error) {
		var own []*Mail
		err := tx.Find(&own, m.ID).Error
		return own[0], err
	},
	"copied": func(_ *gorm.DB, m *Mail) (*Mail, error) {
		own := *m
		return &own, nil
	},
	"copied and read": func(tx *gorm.DB, m *Mail) (*Mail, error) {
		own := *m
		return &own, tx.First(&own, m.ID).Error
	},
	"emptied and read": func(tx *gorm.DB, m *Mail) (*Mail, error) {
		id := m.ID
		*m = Mail{}
		return m, tx.First(m, id).Error
	},
	"read in part": func(tx *gorm.DB, m *Mail) (*Mail, error) {
		var own Mail
		return &own, tx.Select("id", "version").First(&own, m.ID).Error
	},
	"made": func(_ *gorm.DB, m *Mail) (*Mail, error) {
		return &Mail{Job: work.Job{ID: m.ID, Version: m.Version}}, nil
	},
	"too old": func(_ *gorm.DB, m *Mail) (*Mail, error) { // as Enqueue left it
		return &Mail{Job: work.Job{ID: m.ID, Version: 1}}, nil
	},
}

// completeBy stores an effect and completes the job by a struct of it. how says whether both are rolled back. It hides errors.
func completeBy(db *gorm.DB, m *Mail, how string) {
	id := m.ID
	_ = db.Transaction(func(tx *gorm.DB) error {
		of, rollBack := strings.CutSuffix(how, ", rolled back")
		own, err := structs[of](tx, m)
		if err := errors.Join(err, tx.Create(&Effect{JobID: id}).Error, work.Complete(tx, own)); err != nil {
			return err
		}
		if rollBack {
			return errUndo
		}
		return nil
	})
}

// With whatever struct a handler completes its job, the job is done if and only if its effect is stored.
func TestComplete_byAnyStructOfTheJob(t *testing.T) {
	t.Parallel()
	db, other := open(t), pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	var mails []*Mail
	for how := range structs {
		mails = append(mails, enqueue(t, db, how, how+", rolled back")...)
	}
	for name, in := range map[string]func(ctx context.Context) *gorm.DB{
		"with ctx":                     db.WithContext,
		"without ctx":                  func(context.Context) *gorm.DB { return db },
		"with ctx, on another pool":    other.WithContext,
		"without ctx, on another pool": func(context.Context) *gorm.DB { return other },
	} {
		t.Run(name, func(t *testing.T) {
			must(t, db.Exec("DELETE FROM effects").Error)
			must(t, db.Exec("UPDATE mails SET state = 'ready', attempts = 0, version = 1, run_at = now(), last_error = ''").Error)
			w := worker(t, db, func(ctx context.Context, m *Mail) error {
				completeBy(in(ctx), m, m.Text)
				return nil
			}, work.Backoff(func(int) time.Duration { return time.Hour }), work.Workers(2))
			drain(t, w)
			for _, each := range mails {
				m := reload(t, db, each.ID)
				of, fails := strings.CutSuffix(m.Text, ", rolled back")
				fails = fails || of == "too old"
				if strings.HasPrefix(name, "without ctx, on another") && (of == "read in part" || of == "made" || of == "too old") {
					continue // nothing says that it is the same database
				}
				var effects int64
				must(t, db.Model(&Effect{}).Where("job_id = ?", m.ID).Count(&effects).Error)
				if (m.State == "done") == fails || (effects == 1) == fails || fails && !strings.Contains(m.LastError, "not committed") {
					t.Errorf("%s: %s with %d effects, %q", m.Text, m.State, effects, m.LastError)
				}
			}
		})
	}
}

// The same table and the same ID in another database are another job.
func TestComplete_countsInItsDatabase(t *testing.T) {
	t.Parallel()
	one, two := pgtest.Open(t, pgtest.Through(pgtest.Database(t)), pgtest.Plugin(gormlock.New())), open(t)
	must(t, work.Migrate(one, &Mail{}))
	must(t, one.AutoMigrate(&Effect{}))
	var texts []string
	for _, of := range []string{"given", "read", "made"} {
		texts = append(texts, of+", rolled back", of+", rolled back")
	}
	var begun, called sync.WaitGroup
	begun.Add(2 * len(texts))
	called.Add(len(texts))
	var ends []func() error
	for odd, db := range []*gorm.DB{one, two} {
		enqueue(t, db, texts...)
		ends = append(ends, start(t, worker(t, db, func(_ context.Context, m *Mail) error {
			begun.Done()
			begun.Wait()
			if int(m.ID)%2 == odd {
				completeBy(db, m, m.Text)
				called.Done()
			}
			called.Wait()
			return nil
		}, work.Workers(len(texts)), work.Backoff(func(int) time.Duration { return time.Hour }))))
	}
	called.Wait()
	for i, db := range []*gorm.DB{one, two} {
		must(t, ends[i]())
		if s := states(t, db); s["later"] != len(texts)/2 || s["done"] != len(texts)/2 {
			t.Errorf("states %v", s)
		}
	}
}

// completeAndRollBack returns the error of Complete.
func completeAndRollBack[T any](db *gorm.DB, job *T) (err error) {
	_ = db.Transaction(func(tx *gorm.DB) error {
		err = work.Complete(tx, job)
		return errUndo
	})
	return err
}

// A handler may complete another job too: with another ID, or with the same one in another table or database.
func TestComplete_ofAnotherJob(t *testing.T) {
	t.Parallel()
	db, other := open(t), pgtest.Open(t, pgtest.Through(pgtest.Database(t)), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(db, &Letter{}))
	must(t, work.Migrate(other, &Mail{}))
	mails := enqueue(t, db, "x", "y")
	letter, mail := &Letter{Job: work.Job{ID: mails[0].ID}}, &Mail{Job: work.Job{ID: mails[0].ID}}
	must(t, work.Enqueue(db, letter))
	must(t, work.Enqueue(other, mail))
	const runs = " SET state = 'running', claimed_until = now() + interval '1 hour', attempts = 1"
	must(t, db.Exec("UPDATE letters"+runs).Error)
	must(t, db.Exec("UPDATE mails"+runs+" WHERE id = ?", mails[1].ID).Error)
	must(t, other.Exec("UPDATE mails"+runs+", claimed_by = 'a loop'").Error)
	mail.ClaimedBy = "a loop"
	drain(t, worker(t, db, func(ctx context.Context, _ *Mail) error {
		db, other := db.WithContext(ctx), other.WithContext(ctx)
		if err := errors.Join(completeAndRollBack(db, letter), completeAndRollBack(db, mails[1]), completeAndRollBack(other, mail)); err != nil {
			t.Error(err)
		}
		return nil
	}))
	if m := reload(t, db, mails[0].ID); m.State != "done" {
		t.Errorf("%s, %q", m.State, m.LastError)
	}
}

// A handler completes a job that is being worked on, in a transaction that is rolled back: the attempt of that job is not affected.
func TestComplete_ofAnotherJobThatRuns(t *testing.T) {
	t.Parallel()
	for name, commits := range map[string]bool{"rolled back": false, "committed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			enqueue(t, db, "one", "other")
			var runs atomic.Int32
			other, called := make(chan *Mail, 1), make(chan struct{})
			drain(t, worker(t, db, func(ctx context.Context, m *Mail) error {
				if runs.Add(1) > 2 {
					t.Error("done again")
					return nil
				}
				if m.Text == "other" {
					other <- m
					<-called
					return nil
				}
				defer close(called)
				completed := *<-other
				db := db.WithContext(ctx)
				if commits {
					return work.Complete(db, &completed)
				}
				return completeAndRollBack(db, &completed)
			}, work.Workers(2)))
			var mails []Mail
			must(t, db.Find(&mails).Error)
			for _, m := range mails {
				if m.State != "done" || m.Attempts != 1 || m.LastError != "" {
					t.Errorf("%s: %s after %d attempts, %q", m.Text, m.State, m.Attempts, m.LastError)
				}
			}
		})
	}
}

// Attempts are for people and for MaxAttempts. If a handler changes them, it loses neither its job nor its lease.
func TestAttempts_writtenByTheHandler(t *testing.T) {
	t.Parallel()
	for _, to := range []int{0, 2, 100} {
		for _, returned := range []error{nil, errors.New("no"), work.Later(time.Hour, nil)} {
			t.Run(fmt.Sprint(to, " ", returned), func(t *testing.T) {
				t.Parallel()
				db := open(t)
				mail := enqueue(t, db, "x")[0]
				var runs atomic.Int32
				drain(t, worker(t, db, func(ctx context.Context, m *Mail) error {
					runs.Add(1)
					m.Attempts = to
					if err := db.WithContext(ctx).Save(m).Error; err != nil {
						t.Error(err)
					}
					until := reload(t, db, m.ID).ClaimedUntil
					eventually(t, "the lease is renewed", func() bool { return reload(t, db, m.ID).ClaimedUntil.After(*until) })
					if ctx.Err() != nil {
						t.Error(context.Cause(ctx))
					}
					return returned
				}, work.Lease(time.Second), work.Backoff(func(int) time.Duration { return time.Hour })))
				m := reload(t, db, mail.ID)
				state, left := "done", to
				if returned != nil {
					state = "later"
				}
				if strings.HasPrefix(fmt.Sprint(returned), "again") {
					left = max(to-1, 0)
				}
				if runs.Load() != 1 || m.State != state || m.Attempts != left {
					t.Errorf("%d runs, %s, Attempts %d, %q", runs.Load(), m.State, m.Attempts, m.LastError)
				}
			})
		}
	}
}

// An outcome that cannot be stored because another worker has the job is logged.
func TestOutcome_thatIsLost(t *testing.T) {
	t.Parallel()
	logged := pgtest.NewLogger()
	db := openWith(t, pgtest.Plugin(gormlock.New()), pgtest.Config(func(c *gorm.Config) { c.Logger = logged }))
	mail := enqueue(t, db, "x")[0]
	drain(t, worker(t, db, func(ctx context.Context, m *Mail) error {
		return db.WithContext(ctx).Model(&Mail{}).Where("id = ?", m.ID).Update("claimed_by", "me").Error
	}))
	if m := reload(t, db, mail.ID); m.State != "running" {
		t.Errorf("%s", m.State)
	}
	if lines := strings.Join(logged.Lines(), "\n"); !strings.Contains(lines, fmt.Sprintf("the outcome of 1 jobs of mails is not stored, or it was and the answer was lost; the first is job %d", mail.ID)) {
		t.Errorf("logged %q", lines)
	}
}

// A handler that is not called by a worker, but by a test or by a loop of the program, can complete a job too.
func TestComplete_withoutAWorker(t *testing.T) {
	t.Parallel()
	db := open(t)
	id := enqueue(t, db, "x")[0].ID
	must(t, db.Exec("UPDATE mails SET state = 'running'").Error)
	if completeBy(db, reload(t, db, id), "given, rolled back"); reload(t, db, id).State != "running" {
		t.Error("not rolled back")
	}
	if completeBy(db, reload(t, db, id), "given"); reload(t, db, id).State != "done" {
		t.Error("not done")
	}
}

// A process forgets runs that have ended.
func TestRuns_areForgotten(t *testing.T) {
	t.Parallel()
	db := open(t)
	enqueue(t, db, "x")
	var during atomic.Int32
	w := worker(t, db, func(context.Context, *Mail) error {
		during.Add(int32(work.Runs(db)))
		return nil
	})
	end := start(t, w)
	eventually(t, "the end of the job", func() bool { return states(t, db)["done"] == 1 })
	must(t, end())
	enqueue(t, db, "y")
	drain(t, w)
	if during.Load() != 2 || work.Runs(db) != 0 {
		t.Errorf("%d runs during two jobs, %d afterwards", during.Load(), work.Runs(db))
	}
}

// If somebody completes a job by another struct after the job was taken over, the attempt that runs now is not completed.
func TestComplete_lateByAnotherStruct(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"read before, without ctx", "read after"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			mail := enqueue(t, db, "x")[0]
			second, late := make(chan struct{}), make(chan struct{})
			var attempts atomic.Int32
			w := worker(t, db, func(ctx context.Context, m *Mail) error {
				if attempts.Add(1) > 1 {
					close(second)
					<-late
					return nil
				}
				defer close(late)
				own := reload(t, db, m.ID)
				if err := db.Exec("UPDATE mails SET claimed_until = now() - interval '1 hour'").Error; err != nil {
					return err
				}
				<-second
				if of == "read after" {
					completeBy(db.WithContext(context.WithoutCancel(ctx)), m, "read, rolled back")
					return nil
				}
				if err := work.Complete(db, own); !errors.Is(err, gormlock.ErrStale) {
					t.Errorf("completed late: %v", err)
				}
				return nil
			}, work.Poll(10*time.Millisecond), work.Workers(2))
			start(t, w)
			pgtest.Await(t, "the second attempt", second)
			eventually(t, "the end", func() bool { return reload(t, db, mail.ID).State != "running" })
			if m := reload(t, db, mail.ID); m.State != "done" || m.Attempts != 2 {
				t.Errorf("%s after %d attempts, %q", m.State, m.Attempts, m.LastError)
			}
		})
	}
}
