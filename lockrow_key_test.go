package gormlock_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// TestLockRowsByTimesOfAnotherZone: they cost no statements more, whether the column has zones or not, and summer time or
// a model that does not name the type changes nothing.
func TestLockRowsByTimesOfAnotherZone(t *testing.T) {
	t.Parallel()
	type timed struct {
		ID int64     `gorm:"primaryKey;autoIncrement:false"`
		At time.Time `gorm:"primaryKey"`
		N  int
	}
	db := open(t)
	winter, summer := time.FixedZone("winter", 5400), time.FixedZone("summer", 9000)
	for _, columnType := range []string{"timestamptz", "timestamp"} {
		t.Run(columnType, func(t *testing.T) {
			table := "timed_" + columnType
			mustDo(t, db.Exec("CREATE TABLE "+table+" (id bigint, at "+columnType+", n int, PRIMARY KEY (id, at))"))
			inTx(t, db, func(tx *gorm.DB) {
				tx = tx.Table(table).Session(&gorm.Session{})
				var rows []timed
				for i := range 100 {
					zone := winter
					if i%2 == 1 {
						zone = summer
					}
					rows = append(rows, timed{ID: int64(i / 4), At: time.Date(2026, 1, 1, 2*i, 0, 0, 0, zone), N: i + 1})
				}
				mustDo(t, tx.Create(&rows))
				for i := range rows {
					rows[i].N = 0
				}
				watched, recorder := recorded(tx)
				must(t, gormlock.LockRows(watched.Table(table), &rows))
				equal(t, "statements", len(recorder.seen()), 1)
				for i := range rows {
					equal(t, "what is read", rows[i].N, i+1)
				}
			})
		})
	}
}

// TestLockRowsByTimesThatCouldBeEachOthers: the server is asked where moments and clocks fit crosswise.
func TestLockRowsByTimesThatCouldBeEachOthers(t *testing.T) {
	t.Parallel()
	type moment struct {
		At time.Time `gorm:"primaryKey"`
		N  int
	}
	db := open(t)
	mustDo(t, db.Exec("CREATE TABLE moments (at timestamp PRIMARY KEY, n int)"))
	eight := time.Date(2020, 1, 2, 8, 0, 0, 0, time.UTC)
	mustDo(t, db.Create(&[]moment{{At: eight, N: 8}, {At: eight.Add(2 * time.Hour), N: 10}}))
	inTx(t, db, func(tx *gorm.DB) {
		rows := []moment{
			{At: eight.In(time.FixedZone("east", 7200))},                     // the clock shows 10
			{At: eight.Add(2 * time.Hour).In(time.FixedZone("west", -7200))}, // and 8
		}
		must(t, gormlock.LockRows(tx, &rows))
		equal(t, "the first", rows[0].N, 10)
		equal(t, "the second", rows[1].N, 8)
	})
}
