package claims_test

import (
	"database/sql"
	"errors"
	"reflect"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type versionedTask struct {
	ID      int64
	State   string
	Note    string `gormlock:"unversioned"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

type nullableTask struct {
	ID      int64
	State   string
	Version sql.NullInt64 `gormlock:"version"`
}

type pointerTask struct {
	ID      int64
	State   string
	Version *uint32 `gormlock:"version"`
}

// TestClaimVersions: a claim moves the version, the struct holds the new one, and after a rollback it counts as not read, for it has what the claim assigned (V1).
func TestClaimVersions(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	claimVersions(t, db, &versionedTask{State: "ready"}, func(r *versionedTask) (*string, any) { return &r.State, r.Version })
	claimVersions(t, db, &stand.RailsTask{State: "ready"}, func(r *stand.RailsTask) (*string, any) { return &r.State, r.LockVersion })
	claimVersions(t, db, &nullableTask{State: "ready"}, func(r *nullableTask) (*string, any) { return &r.State, r.Version })
	claimVersions(t, db, &pointerTask{State: "ready"}, func(r *pointerTask) (*string, any) { return &r.State, *r.Version })
	claimVersions(t, db, &stand.TimedTask{State: "ready"}, func(r *stand.TimedTask) (*string, any) { return &r.State, r.Version.UTC() })
	claimVersions(t, db, &stand.XminTask{State: "ready"}, func(r *stand.XminTask) (*string, any) { return &r.State, r.Version })
}

func claimVersions[T any](t *testing.T, db *gorm.DB, first *T, look func(*T) (state *string, version any)) {
	t.Helper()
	stand.Must(t, db.AutoMigrate(first))
	stand.MustDo(t, db.Create(first))
	stand.MustDo(t, db.Take(first, 1))
	assign := map[string]any{"state": "running"}
	t.Run(reflect.TypeFor[T]().Name(), func(t *testing.T) {
		var rolledBack []T
		stand.InTx(t, db, func(tx *gorm.DB) {
			rows, err := gormlock.Claim[T](tx, 1, assign, readyTask)
			if err != nil || len(rows) != 1 {
				t.Fatal(rows, err)
			}
			if _, version := look(&rows[0]); version == versionIn(look(first)) {
				t.Fatalf("the version is %v still", version)
			}
			rolledBack = rows
		})
		rows, err := gormlock.Claim[T](db, 1, assign, readyTask)
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		var stored T
		stand.MustDo(t, db.Take(&stored, 1))
		if _, version := look(&rows[0]); version != versionIn(look(&stored)) {
			t.Fatalf("the struct is at %v, the row at %v", version, versionIn(look(&stored)))
		}
		state, _ := look(&rolledBack[0])
		*state = "overwritten"
		if err := db.Save(&rolledBack[0]).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
			t.Fatalf("a struct whose claim was rolled back was saved over another's claim: %v", err)
		}
		if err := db.Save(first).Error; !errors.Is(err, gormlock.ErrStale) {
			t.Fatalf("a struct from before the claim was saved over it: %v", err)
		}
		state, _ = look(&rows[0])
		*state = "done"
		stand.Must(t, db.Save(&rows[0]).Error)
	})
}

func readyTask(q *gorm.DB) *gorm.DB { return q.Where("state = 'ready'") }

func versionIn(_ *string, version any) any { return version }

func TestClaimVersionColumns(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.AutoMigrate(&versionedTask{}))
	stand.MustDo(t, db.Create(&[]versionedTask{{State: "ready"}, {State: "ready"}}))
	t.Run("what is unversioned moves no version", func(t *testing.T) { // H7
		rows, err := gormlock.Claim[versionedTask](db, 2, map[string]any{"note": "seen"}, readyTask)
		if err != nil || len(rows) != 2 || rows[0].Version != 1 || rows[0].Note != "seen" {
			t.Fatal(rows, err)
		}
	})
	t.Run("the version cannot be assigned", func(t *testing.T) {
		_, err := gormlock.Claim[versionedTask](db, 2, map[string]any{"state": "running", "Version": 9}, readyTask)
		if err == nil || stand.FromServer(err) || !strings.Contains(err.Error(), "moves itself") {
			t.Fatal(err)
		}
	})
	t.Run("a version that is NULL counts as none", func(t *testing.T) {
		stand.MustDo(t, db.Exec("alter table versioned_tasks alter version drop not null; update versioned_tasks set version = null"))
		rows, err := gormlock.Claim[versionedTask](db, 1, map[string]any{"state": "running"}, readyTask)
		if err != nil || len(rows) != 1 || rows[0].Version != 1 {
			t.Fatal(rows, err)
		}
	})
}

type generatedKey struct {
	K     int64
	State string
	ID    string `gorm:"primaryKey;<-:false"`
}

// TestClaim_keysThatMove: rows whose key the server changes come back all the same, in order from the second claim on.
func TestClaim_keysThatMove(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	stand.MustDo(t, db.Exec(`create table generated_keys (k int, state text, id text generated always as (state || k) stored primary key);
		insert into generated_keys select i, 'ready' from generate_series(1, 9) i`))
	for _, want := range []int64{0, 6, 3} {
		rows, err := gormlock.Claim[generatedKey](db, 3, map[string]any{"state": "running"}, func(q *gorm.DB) *gorm.DB {
			return q.Where("state = 'ready'").Order("k DESC")
		})
		if err != nil || len(rows) != 3 || want > 0 && (rows[0].K != want || rows[2].K != want-2) {
			t.Fatal(rows, err)
		}
	}
}
