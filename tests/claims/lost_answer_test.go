package claims_test

import (
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type cutJob struct {
	ID    int64
	State string
}

// A claim whose answer is lost is an error, and it is not made again, however the driver sends it.
func TestClaim_whoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	for mode, option := range map[string]pgtest.Option{
		"simple": pgtest.SimpleProtocol(), "simple, in the DSN": pgtest.Param("default_query_exec_mode", "simple_protocol"),
		"exec": pgtest.Param("default_query_exec_mode", "exec"), "cached": pgtest.Param("default_query_exec_mode", "cache_statement"),
	} {
		proxy, through := pgtest.Tap(t, pgtest.DSN(t))
		db := pgtest.Open(t, pgtest.Through(through), pgtest.Schema(), option, pgtest.Plugin(gormlock.New()))
		stand.Must(t, db.AutoMigrate(&cutJob{}))
		claim := func() ([]cutJob, error) {
			return gormlock.Claim[cutJob](db, 2, map[string]any{"state": "taken"}, func(q *gorm.DB) *gorm.DB { return q.Where("state = 'ready'").Order("id") })
		}
		_, err := claim() // the next one asks nothing about the table
		stand.Must(t, err)
		for cut := range int64(4) {
			stand.MustDo(t, db.Exec("TRUNCATE cut_jobs"))
			stand.MustDo(t, db.Exec("INSERT INTO cut_jobs SELECT i, 'ready' FROM generate_series(1, 9) i"))
			var sent atomic.Int64
			proxy.OnQuery(func(string) wiretap.Action {
				if sent.Add(1) == cut+1 {
					return wiretap.CutAnswer
				}
				return wiretap.Pass
			})
			jobs, err := claim()
			proxy.OnQuery(nil)
			var taken int64
			for range 3 { // the pool may still have a connection that was cut
				if db.Model(&cutJob{}).Where("state = 'taken'").Count(&taken).Error == nil {
					break
				}
			}
			if err == nil && int64(len(jobs)) != taken || taken > 2 {
				t.Errorf("%s, answer %d is cut: %d claimed, and %d are taken: %v", mode, cut+1, len(jobs), taken, err)
			}
		}
	}
}
