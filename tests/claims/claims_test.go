// Package claims drains one table of jobs with many workers in several processes, some of which are killed.
package claims_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(workerDSN); dsn != "" {
		if err := work(dsn); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	pgtest.Main(m)
}

// job has no constraint that would hide a mistake.
type job struct {
	ID           int64
	State        string `gorm:"not null;default:ready"`
	Priority     int
	Attempts     int
	ClaimedBy    string
	ClaimedUntil *time.Time
	Version      int64 `gorm:"not null;default:1" gormlock:"version"`
}

// done is one completion of a job.
type done struct {
	ID    int64
	JobID int64
	Style string
}

// TestTortureClaim: 16 workers in 2 processes drain 20,000 jobs (fewer without GORMLOCK_TORTURE=1) while processes are
// killed and started again. Each job is done once, none is lost, and no claim is larger than its limit: workers that
// claim and workers that hold rows locked while they work, on one table.
func TestTortureClaim(t *testing.T) {
	t.Parallel()
	jobs, kills := 3000, 2
	if os.Getenv("GORMLOCK_TORTURE") != "" {
		jobs, kills = 20000, 12
	}
	dsn := pgtest.SchemaDSN(t)
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	create(t, db, jobs)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	processes := []*process{start(ctx, t, dsn), start(ctx, t, dsn)}
	killed := 0
	for left := jobs; left > 0; left = remaining(t, db) {
		if killed < kills && jobs-left > jobs*(killed+1)/(kills+2) {
			victim := killed % len(processes)
			processes[victim].kill(t)
			processes[victim] = start(ctx, t, dsn)
			killed++
		}
		for _, p := range processes {
			if p.over() && remaining(t, db) > 0 {
				t.Fatalf("a worker ended by itself: %v", p.err)
			}
		}
		if pause(ctx); ctx.Err() != nil {
			t.Fatalf("%d of %d jobs are left: %v", left, jobs, ctx.Err())
		}
	}
	for _, p := range processes {
		if <-p.ended; p.err != nil {
			t.Error(p.err)
		}
	}
	if killed != kills {
		t.Errorf("%d of %d kills: nothing was disturbed", killed, kills)
	}
	assertDoneOnce(t, db, jobs)
}

// TestTortureClaimControl: the same check sees it when workers read free jobs without locking them.
func TestTortureClaimControl(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	create(t, db, 500)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			if err := drain(t.Context(), db, "", unlocked); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var twice int64
	if err := db.Raw("select count(*) - count(distinct job_id) from dones").Scan(&twice).Error; err != nil {
		t.Fatal(err)
	}
	if twice == 0 {
		t.Error("no job was done twice: this test would see nothing")
	}
}

func create(t *testing.T, db *gorm.DB, jobs int) {
	t.Helper()
	if err := db.AutoMigrate(&job{}, &done{}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprintf("insert into jobs (priority, attempts, claimed_by) select i %% 5, 0, '' from generate_series(1, %d) i", jobs),
		"create index on jobs (priority desc, id) where state = 'ready'",
		"analyze jobs",
	} {
		if err := db.Exec(text).Error; err != nil {
			t.Fatal(err)
		}
	}
}

func remaining(t *testing.T, db *gorm.DB) int {
	t.Helper()
	var n int64
	if err := db.Model(&job{}).Where("state = 'ready'").Count(&n).Error; err != nil {
		t.Fatal(err)
	}
	return int(n)
}

func assertDoneOnce(t *testing.T, db *gorm.DB, jobs int) {
	t.Helper()
	var facts struct{ Done, Distinct, Claimed, Held, States, Retried, Lies int64 }
	err := db.Raw(`select count(*) done, count(distinct job_id) "distinct",
		count(*) filter (where style = 'claimed') claimed, count(*) filter (where style = 'held') held,
		(select count(*) from jobs where state = 'done') states,
		(select count(*) from jobs where attempts > 1) retried,
		(select count(*) from jobs where attempts > version - 1) lies from dones`).Scan(&facts).Error
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(jobs); facts.Done != n || facts.Distinct != n || facts.States != n || facts.Lies > 0 {
		t.Errorf("of %d jobs: %+v", jobs, facts)
	}
	if facts.Claimed == 0 || facts.Held == 0 {
		t.Errorf("one style did all the work: %+v", facts)
	}
	t.Logf("%+v", facts)
}

// process is a process of workers.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
}

func start(ctx context.Context, t *testing.T, dsn string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.CommandContext(ctx, self), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerDSN+"="+dsn)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
}

func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
