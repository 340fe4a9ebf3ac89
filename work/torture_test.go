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
	"sync"
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

// tortureConns is less than the number of workers of a process, so their pool is full all the time.
const tortureConns = 5

// window is how long younger jobs may overtake an older one that was committed late, or requeued: until a worker looks, and some for a slow
// machine.
const window = 8 * time.Second

// tortured works until it is asked to end. A job has one effect, a row that is stored with its completion, unless its ID is
// a multiple of 3.
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
			switch rand.IntN(40) {
			case 0, 1:
				return errors.New("once in a while")
			case 2:
				return work.Later(time.Duration(rand.IntN(50))*time.Millisecond, nil)
			case 3:
				return work.Dead(nil)
			}
			if m.ID%3 == 0 {
				return nil
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
	late   map[string]time.Time // when batches were committed late
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

// TestTorture: 4 processes work on jobs while they are killed, stopped for longer than a lease, and lose their backends, their pooler and the
// server. Every job is done once, with one effect. Jobs of one account are done one at a time and in order.
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
	for _, text := range []string{
		"CREATE TABLE steps (n bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), job_id bigint, account_id bigint, state text)",
		`CREATE FUNCTION step() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF TG_OP = 'INSERT' OR NEW.state <> OLD.state THEN INSERT INTO steps (job_id, account_id, state) VALUES (NEW.id, NEW.account_id, NEW.state); END IF;
			RETURN NULL; END $$`,
		"CREATE TRIGGER step AFTER INSERT OR UPDATE ON mails FOR EACH ROW EXECUTE FUNCTION step()",
	} {
		must(t, db.Exec(text).Error)
	}
	s := &tormented{t: t, dsns: []string{direct, direct, direct, pooler.DSN() + " default_query_exec_mode=exec"}, done: map[string]int{}, late: map[string]time.Time{}}
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
	var others sync.WaitGroup
	others.Go(func() { s.torment(db, server, pooler, until) })
	others.Go(func() { s.commitLate(db, until) })
	for enqueued < jobs {
		n, err := enqueueSome(db, enqueued)
		if err == nil {
			enqueued += n
		}
		time.Sleep(pause) //nolint:forbidigo // the load
	}
	others.Wait()
	t.Logf("%d jobs, %v", enqueued, s.done)
	deadline := time.Now().Add(2 * time.Minute)
	for {
		requeueDead(db)
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

// enqueueSome enqueues jobs in a transaction. After an error it asks the server whether they were committed.
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
	for { // until it is known whether it was committed
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

// commitLate enqueues jobs in transactions that stay open while others commit.
func (s *tormented) commitLate(db *gorm.DB, until time.Time) {
	for i := 0; time.Now().Before(until); i++ {
		text := fmt.Sprint("late ", i)
		_ = db.Transaction(func(tx *gorm.DB) error {
			for account := range int64(20) {
				m := &Mail{AccountID: &account, Text: text}
				if m.MaxAttempts = 100_000; account%4 == int64(i%4) {
					if err := work.Enqueue(tx, m); err != nil {
						return err
					}
				}
			}
			pgtest.Pause(500 * time.Millisecond)
			return nil
		})
		s.late[text] = time.Now() // if it was committed
		requeueDead(db)
	}
}

func requeueDead(db *gorm.DB) {
	var ids []int64
	if err := db.Raw("SELECT id FROM mails WHERE state = 'dead'").Scan(&ids).Error; err == nil && len(ids) > 0 {
		_, _ = work.Requeue(context.Background(), db, &Mail{}, ids...)
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

// judge counts jobs and effects, and replays what has happened to each account on a model of a queue.
func (s *tormented) judge(db *gorm.DB) {
	s.t.Helper()
	var facts struct{ Jobs, Effects, Jobless, Doubled, Attempts, Late, Done int }
	must(s.t, db.Raw(`SELECT (SELECT count(*) FROM mails) AS jobs, (SELECT sum(attempts) FROM mails) AS attempts, (SELECT count(*) FROM effects) AS effects,
		(SELECT count(*) FROM effects e WHERE NOT EXISTS (SELECT FROM mails m WHERE m.id = e.job_id AND m.id % 3 <> 0)) AS jobless,
		(SELECT count(*) - count(DISTINCT job_id) FROM effects) AS doubled, (SELECT count(*) FROM mails WHERE text LIKE 'late %') AS late,
		(SELECT count(*) FROM steps WHERE state = 'done') AS done`).Scan(&facts).Error)
	s.t.Logf("%+v", facts)
	var want int
	must(s.t, db.Raw("SELECT count(*) FROM mails WHERE id % 3 <> 0").Scan(&want).Error)
	if facts.Effects != want || facts.Jobless != 0 || facts.Doubled != 0 || facts.Done != facts.Jobs {
		s.t.Errorf("%d of %d jobs are done, %d times, %d with an effect, %d without a job, %d doubled", want, facts.Jobs, facts.Done, facts.Effects, facts.Jobless, facts.Doubled)
	}
	var steps []step
	must(s.t, db.Raw("SELECT s.*, m.text FROM steps s JOIN mails m ON m.id = s.job_id WHERE s.account_id IS NOT NULL ORDER BY s.n").Scan(&steps).Error)
	accounts := map[int64]*account{}
	for _, each := range steps {
		a := accounts[each.AccountID]
		if a == nil {
			a = &account{open: map[int64]arrival{}, died: map[int64]bool{}}
			accounts[each.AccountID] = a
		}
		if at, late := s.late[each.Text]; late {
			a.step(s.t, each, arrival{at, true})
		} else {
			a.step(s.t, each, arrival{each.At, false})
		}
	}
}

// step is one change of the state of a job.
type step struct {
	JobID, AccountID int64
	State, Text      string
	At               time.Time
}

// arrival is when a job could first be claimed, and whether that was after younger ones.
type arrival struct {
	at   time.Time
	late bool
}

// account is the model of the jobs of one account.
type account struct {
	open    map[int64]arrival // jobs that are neither done nor dead
	running int64
	died    map[int64]bool
}

func (a *account) step(t *testing.T, s step, came arrival) {
	t.Helper()
	if s.JobID == a.running {
		a.running = 0
	}
	switch s.State {
	case "done":
		delete(a.open, s.JobID)
	case "dead": // perhaps to be requeued
		delete(a.open, s.JobID)
		a.died[s.JobID] = true
	case "running":
		if a.running != 0 {
			t.Errorf("account %d: job %d runs beside job %d", s.AccountID, s.JobID, a.running)
		}
		a.running = s.JobID
		for older, its := range a.open {
			mine := a.open[s.JobID]
			if older < s.JobID && (!its.late && !mine.late || s.At.After(its.at.Add(window))) {
				t.Errorf("account %d: job %d begins %s after the older job %d came", s.AccountID, s.JobID, s.At.Sub(its.at), older)
			}
		}
	case "ready":
		if _, open := a.open[s.JobID]; !open {
			if a.died[s.JobID] {
				came = arrival{s.At, true}
			}
			a.open[s.JobID] = came
		}
	}
}
