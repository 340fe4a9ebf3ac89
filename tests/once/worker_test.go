package once_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// workerJob makes the test binary a worker: it holds where the worker stops, and its database in workerDSN.
const (
	workerJob = "GORMLOCK_ONCE_WORKER"
	workerDSN = "GORMLOCK_ONCE_WORKER_DSN"
)

// runWorker charges under the key "k", and at the place that it is told says so and waits to be killed.
func runWorker() int {
	at := func(place string) {
		if os.Getenv(workerJob) == place {
			fmt.Println(place)
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
	}
	db, err := gorm.Open(postgres.Open(os.Getenv(workerDSN)), &gorm.Config{Logger: logger.Discard})
	if err == nil {
		err = db.Use(gormlock.New())
	}
	if err == nil {
		err = db.Transaction(func(tx *gorm.DB) error {
			_, err := gormlock.Once(tx, "k", func(tx *gorm.DB) (string, error) {
				at("before the effect")
				by, err := charge("k", "worker")(tx)
				at("after the effect")
				return by, err
			})
			at("before the commit")
			return err
		})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	at("after the commit")
	return 0
}

// A process is killed, with SIGKILL, at each step. Whoever comes then, or waits already, charges if and only if it had not
// committed.
func TestOnce_processIsKilled(t *testing.T) {
	t.Parallel()
	for place, want := range map[string]string{
		"before the effect": "heir", "after the effect": "heir", "before the commit": "heir", "after the commit": "worker",
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			worker := exec.CommandContext(t.Context(), os.Args[0])
			worker.Env = append(os.Environ(), workerJob+"="+place, workerDSN+"="+pgtest.SchemaDSN(t))
			input, err := worker.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer input.Close()
			output, err := worker.StdoutPipe()
			if err == nil {
				err = worker.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || strings.TrimSpace(line) != place {
				t.Fatalf("the worker says %q, %v", line, err)
			}
			heir := db.Begin()
			defer heir.Rollback()
			var pid int
			if err := heir.Raw("select pg_backend_pid()").Scan(&pid).Error; err != nil {
				t.Fatal(err)
			}
			got := make(chan string, 1)
			go func() {
				by, err := gormlock.Once(heir, "k", charge("k", "heir"))
				got <- fmt.Sprint(by, errors.Join(err, heir.Commit().Error))
			}()
			if place != "after the commit" {
				pgtest.WaitBackendBlocked(t, pid)
			}
			if err := worker.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = worker.Wait() // killed
			if by := <-got; by != want+"<nil>" {
				t.Errorf("the heir got %s, want %s", by, want)
			}
			if n := charges(t, db, "k"); n != 1 {
				t.Errorf("charged %d times", n)
			}
		})
	}
}
