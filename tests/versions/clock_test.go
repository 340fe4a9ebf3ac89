package versions_test

import (
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A column without a time zone keeps what the clock shows. New rows have their versions in memory whatever zone the process is in.
func TestTimes_withoutAZone(t *testing.T) {
	t.Parallel()
	type child struct {
		ID, ParentID int64
		N            int
		Version      time.Time `gorm:"type:timestamp" gormlock:"version"`
	}
	type parent struct {
		ID       int64
		N        int
		Children []child
		Version  time.Time `gorm:"type:timestamp(3) without time zone" gormlock:"version"`
	}
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 5*3600), time.FixedZone("west", -8*3600)} {
		t.Run(zone.String(), func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&parent{}, &child{}}, pgtest.Config(func(c *gorm.Config) {
				c.NowFunc = func() time.Time { return time.Now().In(zone) }
			}))
			p := parent{Children: []child{{N: 1}, {N: 2}}}
			stand.Must(t, db.Create(&p).Error)
			for range 2 {
				p.N, p.Children[1].N = p.N+1, 7
				stand.Must(t, db.Save(&p.Children[1]).Error)
				stand.Must(t, db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&p).Error)
				stand.Must(t, db.Save(&[]child{p.Children[0]}).Error)
				p.Children[0] = stand.Row[child](t, db, p.Children[0].ID)
			}
			stale := p
			stand.Must(t, db.Model(&parent{}).Where("id = ?", p.ID).Update("n", 9).Error)
			stand.MustStale(t, db.Save(&stale).Error)
		})
	}
}

// The clocks of a zone skip an hour, and a column without a time zone may hold a time in it. No row is found by that, and the error says so.
func TestTimes_thatClocksSkip(t *testing.T) {
	t.Parallel()
	type skipped struct {
		ID      int64
		N       int
		Version time.Time `gorm:"type:timestamp" gormlock:"version"`
	}
	db := stand.Versioned(t, []any{&skipped{}}, pgtest.Param("TimeZone", "EST5EDT"))
	for at, says := range map[string]bool{"2026-03-08 02:30:00": true, "2026-03-08 12:30:00": false} {
		stand.MustDo(t, db.Exec("TRUNCATE skippeds"))
		stand.MustDo(t, db.Exec("INSERT INTO skippeds VALUES (1, 1, ?::text::timestamp)", at))
		s := stand.Row[skipped](t, db, 1)
		if err := db.Save(&s).Error; (err != nil) != says || says && !strings.Contains(err.Error(), "a time that the clocks of EST5EDT skip is not found in it: make it timestamptz") {
			t.Errorf("%s: %v", at, err)
		}
	}
}
