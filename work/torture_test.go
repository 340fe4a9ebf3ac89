package work_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// tortureDSN makes the test binary a process of workers.
const tortureDSN = "GORMLOCK_WORK_TORTURE"

// tortureConns is fewer than the workers of a process: their pool is full all the time.
const tortureConns = 5

// tortured works until it is asked to end. Each job has one effect, a row that is stored with its completion.
func tortured(dsn string) error {
	db, err := gorm.Open(postgres.Open(dsn), &gorm.Config{Logger: logger.Discard})
	for err != nil { // the server may be down
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // until it is up
		db, err = gorm.Open(postgres.Open(dsn), &gorm.Config{Logger: logger.Discard})
	}
	pool, err := db.DB()
	if err != nil {
		return err
	}
	pool.SetMaxOpenConns(tortureConns)
	if err := db.Use(gormlock.New()); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var w *work.Worker[Mail]
	for w == nil {
		w, err = work.New(db, func(ctx context.Context, m *Mail) error {
			time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond) //nolint:forbidigo // the work
			if rand.IntN(20) == 0 {
				return errors.New("once in a while")
			}
			return gormlock.Transaction(db.WithContext(ctx), func(tx *gorm.DB) error {
				if err := tx.Create(&Effect{JobID: m.ID, Text: m.Text}).Error; err != nil {
					return err
				}
				return work.Complete(tx, m)
			})
		}, work.OnePer("account_id"), work.Workers(8), work.Lease(time.Second), work.Poll(50*time.Millisecond), work.Grace(3*time.Second),
			work.Backoff(func(int) time.Duration { return time.Duration(rand.IntN(100)) * time.Millisecond }))
		if err != nil && ctx.Err() != nil {
			return err
		}
	}
	return w.Run(ctx)
}

// tormented are the processes of workers, and what is done to them.
type tormented struct {
	t      *testing.T
	dsns   []string
	all    []*exec.Cmd
	errors []*bytes.Buffer
	done   map[string]int
}

func (s *tormented) start(i int) {
	s.t.Helper()
	c := exec.Command(os.Args[0])
	s.errors[i] = &bytes.Buffer{}
	c.Env, c.Stderr = append(os.Environ(), tortureDSN+"="+s.dsns[i]), s.errors[i]
	must(s.t, c.Start())
	s.all[i] = c
}

func (s *tormented) kill(i int) {
	_ = s.all[i].Process.Kill()
	_ = s.all[i].Wait()
}

// TestTorture: 4 processes work on jobs while they are killed, stopped for longer than a lease, lose their backends, their
// pooler and the server. Every job is done once, with one effect, and those of one account in their order.
func TestTorture(t *testing.T) {
	t.Parallel()
	lasts, jobs := 8*time.Second, 1500
	if os.Getenv("GORMLOCK_TORTURE") != "" {
		lasts, jobs = 90*time.Second, 30_000
	}
	server := pgtest.Fresh(t, pgserver.Setting("max_connections", "60"))
	direct := server.DSN("postgres")
	pooler := pgtest.StartPgBouncer(t, direct, "pool_mode = transaction", "max_client_conn = 200", "default_pool_size = 6", "server_login_retry = 1")
	db := pgtest.Open(t, pgtest.Through(direct), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(db, &Mail{}, work.OnePer("account_id")))
	must(t, db.AutoMigrate(&Effect{}))
	s := &tormented{t: t, dsns: []string{direct, direct, direct, pooler.DSN() + " default_query_exec_mode=exec"}, done: map[string]int{}}
	if pooler.DSN()[0] == 'p' {
		s.dsns[3] = pooler.DSN() + "&default_query_exec_mode=exec"
	}
	s.all, s.errors = make([]*exec.Cmd, len(s.dsns)), make([]*bytes.Buffer, len(s.dsns))
	for i := range s.dsns {
		s.start(i)
		t.Cleanup(func() { s.kill(i) })
	}
	enqueued, until := 0, time.Now().Add(lasts)
	pause := lasts / time.Duration(jobs/10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.torment(db, server, pooler, until)
	}()
	for enqueued < jobs {
		n, err := enqueueSome(db, enqueued)
		if err == nil {
			enqueued += n
		}
		time.Sleep(pause) //nolint:forbidigo // the load
	}
	<-ended
	t.Logf("%d jobs, %v", enqueued, s.done)
	deadline := time.Now().Add(2 * time.Minute)
	for {
		var left int64
		if err := db.Raw("SELECT count(*) FROM mails WHERE state <> 'done'").Scan(&left).Error; err == nil && left == 0 {
			break
		}
		if time.Now().After(deadline) {
			var rows []Mail
			must(t, db.Where("state <> 'done'").Limit(5).Find(&rows).Error)
			t.Fatalf("%d jobs are left, such as %+v", left, rows)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // between questions
	}
	s.judge(db)
}

// enqueueSome enqueues jobs in a transaction. What it says of an error is what the server knows.
func enqueueSome(db *gorm.DB, from int) (n int, err error) {
	batch := fmt.Sprint("batch ", from, rand.Int())
	boom := errors.New("never to be seen")
	err = db.Transaction(func(tx *gorm.DB) error {
		var mails []*Mail
		for i := range 10 {
			m := &Mail{Text: batch}
			if i%2 == 0 {
				account := int64((from + i) % 20)
				m.AccountID = &account
			}
			m.MaxAttempts, m.Priority, m.Queue = 100_000, i%2, []string{"a", "b"}[i%2]
			mails = append(mails, m)
		}
		if err := work.Enqueue(tx, mails...); err != nil {
			return err
		}
		if from%50 == 0 && rand.IntN(2) == 0 {
			return boom
		}
		return nil
	})
	if err == nil {
		return 10, nil
	}
	for { // whether it was committed
		var there int64
		if failed := db.Model(&Mail{}).Where("text = ?", batch).Count(&there).Error; failed == nil {
			if there > 0 {
				return int(there), nil
			}
			return 0, err
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // the server is down
	}
}

func (s *tormented) torment(db *gorm.DB, server *pgserver.Server, pooler *pgtest.PgBouncer, until time.Time) {
	restarted := false
	for time.Now().Before(until) {
		time.Sleep(time.Duration(100+rand.IntN(300)) * time.Millisecond) //nolint:forbidigo // between blows
		i := rand.IntN(len(s.all))
		what := []string{"kill", "kill", "stop", "backend", "backend", "backend", "pooler", "restart"}[rand.IntN(8)]
		switch what {
		case "kill":
			s.kill(i)
			s.start(i)
		case "stop":
			_ = s.all[i].Process.Signal(syscall.SIGSTOP)
			time.Sleep(1500 * time.Millisecond) //nolint:forbidigo // longer than a lease
			_ = s.all[i].Process.Signal(syscall.SIGCONT)
		case "backend":
			_ = db.Exec(`SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE datname = current_database()
				AND pid <> pg_backend_pid() ORDER BY random() LIMIT 3) AS b`)
		case "pooler":
			pooler.Kill()
			pooler.Start()
		case "restart":
			if restarted && os.Getenv("GORMLOCK_TORTURE") == "" {
				continue
			}
			restarted = true
			down := server.Crash
			if rand.IntN(2) == 0 {
				down = server.Shutdown
			}
			if err := down(); err != nil {
				s.t.Error(err)
			}
			ctx, stop := context.WithTimeout(context.Background(), bound)
			if err := server.Restart(ctx); err != nil {
				s.t.Error(err)
			}
			stop()
		}
		s.done[what]++
	}
}

// judge counts jobs and effects, and compares each account's order with that of a queue.
func (s *tormented) judge(db *gorm.DB) {
	s.t.Helper()
	var facts struct{ Jobs, Effects, Jobless, Doubled, Attempts int }
	must(s.t, db.Raw(`SELECT (SELECT count(*) FROM mails) AS jobs, (SELECT sum(attempts) FROM mails) AS attempts, (SELECT count(*) FROM effects) AS effects,
		(SELECT count(*) FROM effects e WHERE NOT EXISTS (SELECT FROM mails m WHERE m.id = e.job_id)) AS jobless,
		(SELECT count(*) - count(DISTINCT job_id) FROM effects) AS doubled`).Scan(&facts).Error)
	s.t.Logf("%+v", facts)
	if facts.Effects != facts.Jobs || facts.Jobless != 0 || facts.Doubled != 0 {
		s.t.Errorf("%d jobs have %d effects, %d without a job, %d doubled", facts.Jobs, facts.Effects, facts.Jobless, facts.Doubled)
	}
	var order []struct{ AccountID, JobID int64 }
	must(s.t, db.Raw(`SELECT m.account_id, e.job_id FROM effects e JOIN mails m ON m.id = e.job_id WHERE m.account_id IS NOT NULL ORDER BY e.id`).Scan(&order).Error)
	last := map[int64]int64{}
	for _, o := range order {
		if o.JobID < last[o.AccountID] {
			s.t.Errorf("account %d: job %d was done after job %d", o.AccountID, o.JobID, last[o.AccountID])
		}
		last[o.AccountID] = o.JobID
	}
}
