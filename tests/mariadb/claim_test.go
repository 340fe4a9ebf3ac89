package mariadb_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// job is a row to be claimed.
type job struct {
	ID        int64
	State     string `gorm:"size:20;index"`
	Priority  int
	Attempts  int
	Path      string `gorm:"size:100"`
	UpdatedAt time.Time
	DeletedAt gorm.DeletedAt
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

func ready(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready").Order("priority DESC, id") }

var running = map[string]any{"state": "running", "attempts": gorm.Expr("attempts + 1")}

// A claim returns the rows as they are stored, in the asked order, at their new version; without a transaction and in one.
func TestClaim(t *testing.T) {
	t.Parallel()
	db := open(t, &job{})
	for id := range int64(6) {
		stand.Must(t, db.Create(&job{ID: id + 1, State: "ready", Priority: int(id % 2), Path: `it's a \ path`}).Error)
	}
	stand.Must(t, db.Delete(&job{ID: 2, Version: 1}).Error)
	jobs, err := gormlock.Claim[job](db, 2, running, ready)
	stand.Must(t, err)
	if len(jobs) != 2 || jobs[0].ID != 4 || jobs[1].ID != 6 {
		t.Fatal("claimed", jobs)
	}
	for _, j := range jobs {
		stand.Equal(t, "the struct", j, stand.Row[job](t, db, j.ID))
		stand.Equal(t, "attempts", j.Attempts, 1)
		stand.Equal(t, "version", j.Version, 2)
	}
	jobs[0].State = "done"
	stand.Must(t, db.Save(&jobs[0]).Error)

	// Read in the order of an index: where the server sorts, a claim locks all that it sorts, until its transaction ends.
	path := func(q *gorm.DB) *gorm.DB {
		return q.Where("state = ?", "ready").Order("id").Where("path = ?", `it's a \ path`)
	}
	tx := db.Begin()
	mine, err := gormlock.Claim[job](tx, 2, running, path)
	stand.Must(t, err)
	stand.Equal(t, "claimed in a transaction", len(mine), 2)
	rest, err := gormlock.Claim[job](db, 10, running, path) // those of tx are locked: they are left out
	stand.Must(t, err)
	stand.Equal(t, "left", len(rest), 1)
	stand.Must(t, tx.Rollback().Error)
	stand.Equal(t, "state after the rollback", stand.Row[job](t, db, mine[0].ID).State, "ready")
	stand.Equal(t, "version after the rollback", mine[0].Version, stand.Unread)
	none, err := gormlock.Claim[job](db, 5, running, func(q *gorm.DB) *gorm.DB { return q.Where("state = 'never'") })
	stand.Must(t, err)
	stand.Equal(t, "none", len(none), 0)
}

type pairJob struct {
	Room  string `gorm:"primaryKey;size:20"`
	Seat  int64  `gorm:"primaryKey;autoIncrement:false"`
	State string `gorm:"size:20"`
}

// Composite keys, and no version.
func TestClaim_compositeKey(t *testing.T) {
	t.Parallel()
	db := open(t, &pairJob{})
	for seat := range int64(4) {
		stand.Must(t, db.Create(&pairJob{Room: "A", Seat: seat + 1, State: "ready"}).Error)
	}
	claimed, err := gormlock.Claim[*pairJob](db, 3, map[string]any{"state": "running"}, func(q *gorm.DB) *gorm.DB { return q.Where("state = 'ready'").Order("seat DESC") })
	stand.Must(t, err)
	if len(claimed) != 3 || claimed[0].Seat != 4 || claimed[2].Seat != 2 || claimed[1].State != "running" {
		t.Error("claimed", claimed)
	}
}

// Eight workers drain a table: each job is claimed once, and no claim is larger than its limit.
func TestClaim_once(t *testing.T) {
	t.Parallel()
	db := open(t, &job{})
	const jobs, limit = 400, 7
	all := make([]job, jobs)
	for i := range all {
		all[i].State = "ready"
	}
	stand.Must(t, db.Create(&all).Error)
	var mu sync.Mutex
	times := map[int64]int{}
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			for errs[i] == nil {
				var claimed []job
				errs[i] = gormlock.Transaction(db, func(tx *gorm.DB) (err error) {
					claimed, err = gormlock.Claim[job](tx, limit, running, func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready").Order("id") })
					return err
				}, gormlock.Attempts(100))
				mu.Lock()
				for _, j := range claimed {
					times[j.ID]++
				}
				mu.Unlock()
				if len(claimed) > limit {
					t.Error(len(claimed), "rows for a limit of", limit)
				}
				var left int64
				if errs[i] == nil && len(claimed) == 0 {
					if errs[i] = db.Model(&job{}).Where("state = 'ready'").Count(&left).Error; left == 0 {
						return
					}
				}
			}
		})
	}
	wg.Wait()
	stand.Must(t, errors.Join(errs...))
	stand.Equal(t, "claimed", len(times), jobs)
	for id, n := range times {
		stand.Equal(t, "times", n, 1)
		stand.Equal(t, "version", stand.Row[job](t, db, id).Version, 2)
	}
}

type fencedJob struct {
	ID    int64
	State string `gorm:"size:20"`
	Fence int64  `gorm:"not null;default:0" gormlock:"fence"`
}

func token(n int64) fence.Token { return fence.Token{Name: "report", Number: n} }

// Fences in rows: a token older than the row's is refused on each path, and nothing is written.
func TestFences(t *testing.T) {
	t.Parallel()
	db := open(t, &fencedJob{})
	with := func(n int64) *gorm.DB { return db.Clauses(gormlock.Fence(token(n))) }
	row := fencedJob{ID: 1, State: "ready"}
	stand.Must(t, with(5).Create(&row).Error)
	stand.Equal(t, "fence", row.Fence, 5)
	stand.Must(t, with(5).Model(&row).Update("state", "ready").Error) // which changes nothing
	for name, err := range map[string]error{
		"update": with(4).Model(&row).Update("state", "late").Error,
		"save":   with(4).Save(&fencedJob{ID: 1, State: "late"}).Error,
		"slice":  with(4).Save(&[]fencedJob{{ID: 1, State: "late"}}).Error,
		"upsert": with(4).Clauses(stand.UpdateAll).Create(&fencedJob{ID: 1, State: "late"}).Error,
		"bulk":   with(4).Model(&fencedJob{}).Where("state = 'ready'").Update("state", "late").Error,
		"delete": with(4).Delete(&row).Error,
	} {
		if !errors.Is(err, gormlock.ErrFenced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := gormlock.Claim[fencedJob](with(4), 1, map[string]any{"state": "late"}, func(q *gorm.DB) *gorm.DB { return q.Where("state = 'ready'") })
	if !errors.Is(err, gormlock.ErrFenced) {
		t.Error("claim:", err)
	}
	got := stand.Row[fencedJob](t, db, 1)
	stand.Equal(t, "row", got, fencedJob{ID: 1, State: "ready", Fence: 5})
	claimed, err := gormlock.Claim[fencedJob](with(6), 1, map[string]any{"state": "running"}, func(q *gorm.DB) *gorm.DB { return q.Where("state = 'ready'") })
	stand.Must(t, err)
	stand.Equal(t, "claimed", claimed[0], fencedJob{ID: 1, State: "running", Fence: 6})
	stand.Must(t, with(7).Clauses(stand.UpdateAll).Create(&fencedJob{ID: 1, State: "later"}).Error)
	stand.Equal(t, "row", stand.Row[fencedJob](t, db, 1), fencedJob{ID: 1, State: "later", Fence: 7})
}

// The conditions of a claim are parameters: a constant is written into the text by the rules of PostgreSQL alone.
func TestClaim_sendsParameters(t *testing.T) {
	t.Parallel()
	db := open(t, &job{})
	sent := mariaserver.Statements(t, db, func() {
		_, err := gormlock.Claim[job](db, 1, running, func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", `\' OR 1=1 -- `) })
		stand.Must(t, err)
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			return tx.Scopes(gormlock.WithSkipLocked()).Where("state = ?", `\' OR 2=2 -- `).Find(&[]job{}).Error
		}))
	})
	text := strings.Join(sent, "\n")
	if !strings.Contains(text, "SKIP LOCKED") || !strings.Contains(text, `state = '\\\' OR 1=1 -- '`) && !strings.Contains(text, `state = ?`) {
		t.Error(text)
	}
}
