package claims_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
)

// workerDSN tells the test binary that it is a process of workers.
const workerDSN = "GORMLOCK_CLAIMS_WORKER_DSN"

const workers = 8

// work drains the table with eight workers: five claim, three hold rows locked while they work.
func work(dsn string) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	pool := stdlib.OpenDB(*config)
	defer func() { _ = pool.Close() }()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return err
	}
	if err := db.Use(gormlock.New()); err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make(chan error, workers)
	for i := range workers {
		style := claiming
		if i%3 == 2 {
			style = holding
		}
		name := fmt.Sprintf("%d.%d.%d", os.Getpid(), i, time.Now().UnixNano())
		all.Go(func() { errs <- drain(context.Background(), db, name, style) })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// drain works until no job is left that anybody could ever do.
func drain(ctx context.Context, db *gorm.DB, name string, style func(db *gorm.DB, name string, round int) (int, error)) error {
	for round := 0; ; round++ {
		n, err := style(db, name, round)
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		var left int64
		if err := db.Model(&job{}).Where("state = 'ready'").Count(&left).Error; err != nil || left == 0 {
			return err
		}
		pause(ctx)
	}
}

// pause lets others work: what is left may be free when a lease is over.
func pause(ctx context.Context) {
	timer := time.NewTimer(10 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

const limit = 10

func free(q *gorm.DB) *gorm.DB {
	return q.Where("state = 'ready' and (claimed_until is null or claimed_until < now())").Order("priority desc, id")
}

// claiming claims jobs for a second and completes them one by one. Who was taken over is refused by the version.
func claiming(db *gorm.DB, name string, round int) (int, error) {
	token := fmt.Sprint(name, ".", round)
	jobs, err := gormlock.Claim[job](db, limit, map[string]any{
		"attempts": gorm.Expr("attempts + 1"), "claimed_by": token, "claimed_until": gorm.Expr("now() + interval '1 second'"),
	}, free)
	if err != nil {
		return 0, err
	}
	if err := checkClaim(db, token, jobs); err != nil {
		return 0, err
	}
	for i := range jobs {
		err := db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&done{JobID: jobs[i].ID, Style: "claimed"}).Error; err != nil {
				return err
			}
			return tx.Model(&jobs[i]).Update("state", "done").Error
		})
		if err != nil && !errors.Is(err, gormlock.ErrStale) {
			return 0, err
		}
	}
	return len(jobs), nil
}

// checkClaim compares what a claim returned with what it did.
func checkClaim(db *gorm.DB, token string, jobs []job) error {
	var claimed int64
	if err := db.Model(&job{}).Where("claimed_by = ?", token).Count(&claimed).Error; err != nil {
		return err
	}
	if int(claimed) > len(jobs) || len(jobs) > limit {
		return fmt.Errorf("a claim of %d returned %d rows and changed %d", limit, len(jobs), claimed)
	}
	for i := 1; i < len(jobs); i++ {
		if a, b := jobs[i-1], jobs[i]; a.Priority < b.Priority {
			return fmt.Errorf("job %d of priority %d before %d of %d", a.ID, a.Priority, b.ID, b.Priority)
		}
	}
	return nil
}

// holding locks jobs and completes them in the same transaction: who is killed leaves them as they were.
func holding(db *gorm.DB, _ string, _ int) (n int, err error) {
	err = gormlock.Transaction(db, func(tx *gorm.DB) error {
		var jobs []job
		if err := free(tx).Scopes(gormlock.WithSkipLocked()).Limit(limit / 2).Find(&jobs).Error; err != nil {
			return err
		}
		for i := range jobs {
			if err := tx.Create(&done{JobID: jobs[i].ID, Style: "held"}).Error; err != nil {
				return err
			}
			change := map[string]any{"state": "done", "attempts": gorm.Expr("attempts + 1")}
			if err := tx.Model(&jobs[i]).Updates(change).Error; err != nil {
				return err
			}
		}
		n = len(jobs)
		return nil
	})
	return n, err
}

// unlocked is the mistake: jobs that were read as free are worked on, though others read them too.
func unlocked(db *gorm.DB, _ string, _ int) (int, error) {
	var jobs []job
	if err := free(db).Limit(limit).Find(&jobs).Error; err != nil {
		return 0, err
	}
	for i := range jobs {
		if err := db.Create(&done{JobID: jobs[i].ID, Style: "read"}).Error; err != nil {
			return 0, err
		}
		if err := db.Clauses(gormlock.IgnoreVersion()).Model(&jobs[i]).Update("state", "done").Error; err != nil {
			return 0, err
		}
	}
	return len(jobs), nil
}
