package claims_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

var errUndone = errors.New("undone")

// batchQueue has no version itself.
type batchQueue struct {
	ID    int64
	State string
	Jobs  []batchJob
}

type batchJob struct {
	ID           int64
	BatchQueueID *int64
	State        string
	Note         string `gormlock:"unversioned"`
	Version      int64  `gorm:"not null;default:1" gormlock:"version"`
	Steps        []batchStep
}

type batchStep struct {
	ID         int64
	BatchJobID int64
	State      string
	Version    int64 `gorm:"not null;default:1" gormlock:"version"`
}

func claimJob(t *testing.T, tx *gorm.DB, column string, scopes ...func(*gorm.DB) *gorm.DB) *batchJob {
	t.Helper()
	jobs, err := gormlock.Claim[batchJob](tx, 1, map[string]any{column: "claimed"}, scopes...)
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	return &jobs[0]
}

// V1: what a transaction read of rows that it wrote before is not saved after a rollback, where a claim is the read, the
// write or both.
func TestV1_ClaimsOfRolledBackWrites(t *testing.T) {
	t.Parallel()
	bulk := func(t *testing.T, tx *gorm.DB) {
		stand.MustDo(t, tx.Model(&batchJob{}).Where("id = 1").Update("state", "seen"))
	}
	for name, read := range map[string]func(t *testing.T, tx *gorm.DB) *batchJob{
		"bulk update, claim": func(t *testing.T, tx *gorm.DB) *batchJob {
			bulk(t, tx)
			return claimJob(t, tx, "state")
		},
		"bulk update, claim of what is unversioned": func(t *testing.T, tx *gorm.DB) *batchJob {
			bulk(t, tx)
			return claimJob(t, tx, "note")
		},
		"claim, claim": func(t *testing.T, tx *gorm.DB) *batchJob {
			claimJob(t, tx, "state")
			return claimJob(t, tx, "state")
		},
		"claim, claim of what is unversioned": func(t *testing.T, tx *gorm.DB) *batchJob {
			claimJob(t, tx, "state")
			return claimJob(t, tx, "note")
		},
		"claim of pointers, claim": func(t *testing.T, tx *gorm.DB) *batchJob {
			claimJob(t, tx, "state")
			jobs, err := gormlock.Claim[*batchJob](tx, 1, map[string]any{"state": "claimed"})
			stand.Must(t, err)
			return jobs[0]
		},
		"claim, First": func(t *testing.T, tx *gorm.DB) *batchJob {
			claimJob(t, tx, "state")
			var job batchJob
			stand.MustDo(t, tx.First(&job, 1))
			return &job
		},
		"claim, LockRow": func(t *testing.T, tx *gorm.DB) *batchJob {
			claimJob(t, tx, "state")
			job := batchJob{ID: 1}
			stand.Must(t, gormlock.LockRow(tx, &job))
			return &job
		},
		"claim in a savepoint that stays, First": func(t *testing.T, tx *gorm.DB) *batchJob {
			stand.Must(t, tx.Transaction(func(tx *gorm.DB) error { claimJob(t, tx, "state"); return nil }))
			var job batchJob
			stand.MustDo(t, tx.First(&job, 1))
			return &job
		},
		"bulk update, claim, Save": func(t *testing.T, tx *gorm.DB) *batchJob {
			bulk(t, tx)
			job := claimJob(t, tx, "state")
			stand.MustDo(t, tx.Save(job))
			return job
		},
	} {
		for in, run := range transactions {
			t.Run(in+": "+name, func(t *testing.T) {
				t.Parallel()
				db := stand.Versioned(t, []any{&batchQueue{}, &batchJob{}, &batchStep{}})
				stand.MustDo(t, db.Create(&batchJob{ID: 1}))
				var job *batchJob
				run(t, db, func(tx *gorm.DB) error { job = read(t, tx); return errUndone })
				for range 3 { // rivals, whose versions it must not meet
					stand.MustDo(t, db.Model(&batchJob{}).Where("id = 1").Update("state", "rival"))
					if err := db.Save(job).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
						t.Fatal(job, err)
					}
				}
				kept := batchJob{}
				stand.Must(t, db.Transaction(func(tx *gorm.DB) error { kept = *read(t, tx); return nil }))
				stand.MustDo(t, db.Save(&kept)) // what was committed was read
			})
		}
	}
}

// transactions are ways to roll a body back.
var transactions = map[string]func(*testing.T, *gorm.DB, func(tx *gorm.DB) error){
	"transaction": func(t *testing.T, db *gorm.DB, body func(tx *gorm.DB) error) {
		if err := db.Transaction(body); !errors.Is(err, errUndone) {
			t.Fatal(err)
		}
	},
	"savepoint": func(t *testing.T, db *gorm.DB, body func(tx *gorm.DB) error) {
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Transaction(body); !errors.Is(err, errUndone) {
				t.Fatal(err)
			}
			return nil
		}))
	},
	"gormlock.Transaction": func(t *testing.T, db *gorm.DB, body func(tx *gorm.DB) error) {
		if err := gormlock.Transaction(db, body); !errors.Is(err, errUndone) {
			t.Fatal(err)
		}
	},
}

// V1: a claim that was rolled back to a savepoint is no write any more.
func TestV1_ClaimAfterAClaimThatWasRolledBack(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&batchQueue{}, &batchJob{}, &batchStep{}})
	stand.MustDo(t, db.Create(&batchJob{ID: 1}))
	var first, second, read *batchJob
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		_ = tx.Transaction(func(tx *gorm.DB) error { first = claimJob(t, tx, "state"); return errUndone })
		read = &batchJob{ID: 1}
		stand.MustDo(t, tx.First(read))
		_ = tx.Transaction(func(tx *gorm.DB) error { second = claimJob(t, tx, "state"); return errUndone })
		return nil
	}))
	stand.Equal(t, "versions", [3]int64{first.Version, read.Version, second.Version}, [3]int64{stand.Unread, 1, stand.Unread})
	stand.MustDo(t, db.Save(read))
}

// V1: what a claim preloads is read too, even if the claimed model has no version itself.
func TestV1_PreloadsOfClaims(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&batchQueue{}, &batchJob{}, &batchStep{}})
	stand.MustDo(t, db.Create(&batchQueue{ID: 1, Jobs: []batchJob{{ID: 1, Steps: []batchStep{{ID: 1}, {ID: 2}}}}}))
	var job *batchJob
	var queues []batchQueue
	_ = db.Transaction(func(tx *gorm.DB) (err error) {
		stand.MustDo(t, tx.Model(&batchStep{ID: 1, Version: 1}).Update("state", "seen"))
		job = claimJob(t, tx, "state", func(q *gorm.DB) *gorm.DB {
			return q.Preload("Steps", func(q *gorm.DB) *gorm.DB { return q.Order("id") })
		})
		queues, err = gormlock.Claim[batchQueue](tx, 1, map[string]any{"state": "claimed"}, func(q *gorm.DB) *gorm.DB { return q.Preload("Jobs.Steps", "id = 1") })
		stand.Must(t, err)
		return errUndone
	})
	stand.Equal(t, "claimed", job.Version, stand.Unread) // a trigger of steps may have written the job
	stand.Equal(t, "preloaded", [2]int64{job.Steps[0].Version, job.Steps[1].Version}, [2]int64{stand.Unread, stand.Unread})
	preloaded := queues[0].Jobs[0]
	stand.Equal(t, "preloaded by what has no version", [2]int64{preloaded.Version, preloaded.Steps[0].Version}, [2]int64{stand.Unread, stand.Unread})
}

// V1: where 0 is a version too, no number that the row can have is left.
func TestV1_ClaimsOfRolledBackWrites_rails(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.RailsTask{}})
	stand.MustDo(t, db.Create(&stand.RailsTask{ID: 1, State: "ready"}))
	var first, again []stand.RailsTask
	_ = db.Transaction(func(tx *gorm.DB) (err error) {
		first, err = gormlock.Claim[stand.RailsTask](tx, 1, map[string]any{"state": "running"})
		stand.Must(t, err)
		again, err = gormlock.Claim[stand.RailsTask](tx, 1, map[string]any{"state": "running"})
		stand.Must(t, err)
		return errUndone
	})
	stand.MustBeUnread(t, db.Save(&again[0]).Error)
	stand.MustBeUnread(t, db.Save(&first[0]).Error)
}

type hookedJob struct {
	ID      int64
	State   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (j *hookedJob) AfterFind(*gorm.DB) error {
	if j.State == "claimed" {
		return errUndone
	}
	return nil
}

// V1: rows that come back beside an error are claimed all the same, and so are those that do not come back.
func TestV1_ClaimsThatFail(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&hookedJob{}})
	stand.MustDo(t, db.Create(&[]hookedJob{{ID: 1}, {ID: 2}}))
	var jobs []hookedJob
	var job hookedJob
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Model(&hookedJob{ID: 1, Version: 1}).Update("state", "seen"))
		var err error
		jobs, err = gormlock.Claim[hookedJob](tx, 2, map[string]any{"state": "claimed"}, func(q *gorm.DB) *gorm.DB { return q.Order("id") })
		if !errors.Is(err, errUndone) || len(jobs) != 2 {
			t.Fatal(jobs, err)
		}
		if err := tx.First(&job, 2).Error; !errors.Is(err, errUndone) {
			t.Fatal(err)
		}
		return errUndone
	})
	stand.Equal(t, "versions", [3]int64{jobs[0].Version, jobs[1].Version, job.Version}, [3]int64{stand.Unread, stand.Unread, stand.Unread})
}
