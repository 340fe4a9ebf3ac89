package rows_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
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
	db := stand.Open(t)
	winter, summer := time.FixedZone("winter", 5400), time.FixedZone("summer", 9000)
	for _, columnType := range []string{"timestamptz", "timestamp"} {
		t.Run(columnType, func(t *testing.T) {
			table := "timed_" + columnType
			stand.MustDo(t, db.Exec("CREATE TABLE "+table+" (id bigint, at "+columnType+", n int, PRIMARY KEY (id, at))"))
			stand.InTx(t, db, func(tx *gorm.DB) {
				tx = tx.Table(table).Session(&gorm.Session{})
				var rows []timed
				for i := range 100 {
					zone := winter
					if i%2 == 1 {
						zone = summer
					}
					rows = append(rows, timed{ID: int64(i / 4), At: time.Date(2026, 1, 1, 2*i, 0, 0, 0, zone), N: i + 1})
				}
				stand.MustDo(t, tx.Create(&rows))
				for i := range rows {
					rows[i].N = 0
				}
				watched, recorder := stand.Recorded(tx)
				stand.Must(t, gormlock.LockRows(watched.Table(table), &rows))
				stand.Equal(t, "statements", len(recorder.Seen()), 1)
				for i := range rows {
					stand.Equal(t, "what is read", rows[i].N, i+1)
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
	db := stand.Open(t)
	stand.MustDo(t, db.Exec("CREATE TABLE moments (at timestamp PRIMARY KEY, n int)"))
	eight := time.Date(2020, 1, 2, 8, 0, 0, 0, time.UTC)
	stand.MustDo(t, db.Create(&[]moment{{At: eight, N: 8}, {At: eight.Add(2 * time.Hour), N: 10}}))
	stand.InTx(t, db, func(tx *gorm.DB) {
		rows := []moment{
			{At: eight.In(time.FixedZone("east", 7200))},                     // the clock shows 10
			{At: eight.Add(2 * time.Hour).In(time.FixedZone("west", -7200))}, // and 8
		}
		stand.Must(t, gormlock.LockRows(tx, &rows))
		stand.Equal(t, "the first", rows[0].N, 10)
		stand.Equal(t, "the second", rows[1].N, 8)
	})
}
