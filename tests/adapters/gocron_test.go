package adapters

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// instance is a scheduler that asks whether it leads before each run.
type instance struct {
	leases *lease.Manager
	runs   atomic.Int64
}

func schedule(t *testing.T, pool *sql.DB, elector func(m *lease.Manager) gocron.Elector) *instance {
	t.Helper()
	leases, err := lease.New(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{leases: leases}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector(leases)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scheduler.NewJob(gocron.DurationJob(20*time.Millisecond), gocron.NewTask(func() { i.runs.Add(1) })); err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	t.Cleanup(func() {
		if err := scheduler.Shutdown(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = leases.Close(ctx) // whose server may be out of reach
	})
	return i
}

// passes waits until an instance has run n times more.
func (i *instance) passes(t *testing.T, n int64) {
	t.Helper()
	until := i.runs.Load() + n
	for end := time.Now().Add(30 * time.Second); i.runs.Load() < until; {
		if time.Now().After(end) {
			t.Fatalf("%d runs, not %d", i.runs.Load(), until)
		}
	}
}

// leaseTables are the connection string of a schema with the tables of leases, and a pool on it.
func leaseTables(t *testing.T) (dsn string, direct *sql.DB) {
	t.Helper()
	dsn = pgtest.SchemaDSN(t)
	direct = pgtest.SQLDB(t, pgtest.Through(dsn))
	if err := lease.Migrate(t.Context(), direct); err != nil {
		t.Fatal(err)
	}
	return dsn, direct
}

// One scheduler runs the jobs; when it is cut off another one does, and it runs none any more.
func TestGocron_aLeaderThatIsCutOff(t *testing.T) {
	t.Parallel()
	dsn, direct := leaseTables(t)
	proxy, through := pgtest.Tap(t, dsn)
	elector := func(m *lease.Manager) gocron.Elector {
		return lease.Elector(m, lockkey.Of("scheduler"), 500*time.Millisecond)
	}
	first := schedule(t, pgtest.SQLDB(t, pgtest.Through(through), pgtest.MaxConns(4)), elector)
	first.passes(t, 3)
	second := schedule(t, direct, elector)
	first.passes(t, 10)
	if n := second.runs.Load(); n > 0 {
		t.Fatalf("a follower ran %d jobs", n)
	}
	proxy.Refuse()
	proxy.Cut()
	second.passes(t, 1)
	before := first.runs.Load()
	second.passes(t, 10)
	if after := first.runs.Load(); after > before+1 { // one may have been asked before
		t.Errorf("who was cut off ran %d jobs beside the next leader", after-before)
	}
}

// schedulerDSN makes a process of this test binary a scheduler, which writes a line for each run of its job.
const schedulerDSN = "GORMLOCK_TEST_SCHEDULER"

func runScheduler() error {
	pool, err := sql.Open("pgx", os.Getenv(schedulerDSN))
	if err != nil {
		return err
	}
	leases, err := lease.New(context.Background(), pool)
	if err != nil {
		return err
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(lease.Elector(leases, lockkey.Of("scheduler"), 500*time.Millisecond)))
	if err != nil {
		return err
	}
	if _, err := scheduler.NewJob(gocron.DurationJob(20*time.Millisecond), gocron.NewTask(func() { fmt.Println("ran") })); err != nil {
		return err
	}
	scheduler.Start()
	select {} // until it is killed
}

// A leader that is killed is replaced when its lease has run out.
func TestGocron_aLeaderThatIsKilled(t *testing.T) {
	t.Parallel()
	dsn, direct := leaseTables(t)
	first := exec.CommandContext(t.Context(), os.Args[0])
	first.Env, first.Stderr = append(os.Environ(), schedulerDSN+"="+dsn), os.Stderr
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	ran := func(n int) {
		for range n {
			if !lines.Scan() {
				t.Fatal("the process has ended", lines.Err())
			}
		}
	}
	ran(3)
	second := schedule(t, direct, func(m *lease.Manager) gocron.Elector {
		return lease.Elector(m, lockkey.Of("scheduler"), time.Minute)
	})
	ran(10)
	if n := second.runs.Load(); n > 0 {
		t.Errorf("a follower ran %d jobs", n)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	second.passes(t, 3)
}
