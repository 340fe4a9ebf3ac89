package work_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/work"
)

// asking is a part of the statement with which a handler asks for its job, if that was claimed some time ago.
const asking = "|| '' = 'running'"

// question is a part of that statement alone.
const question = `"claimed_by" = ANY(`

// A job that was claimed in advance has its only attempt also if nobody could be asked whether this process still has it.
func TestUnproven_whoseQuestionFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(proxy *wiretap.Proxy){
		"answers are lost": func(proxy *wiretap.Proxy) {
			var n atomic.Int64
			proxy.OnQuery(func(sql string) wiretap.Action {
				if strings.Contains(sql, asking) && n.Add(1)%8 < 3 {
					return wiretap.CutAnswer
				}
				return wiretap.Pass
			})
		},
		"many answers are lost": func(proxy *wiretap.Proxy) {
			var n atomic.Int64
			proxy.OnQuery(func(sql string) wiretap.Action {
				if strings.Contains(sql, question) && n.Add(1)%16 < 10 {
					return wiretap.CutAnswer
				}
				return wiretap.Pass
			})
		},
		"the server is gone": func(proxy *wiretap.Proxy) {
			proxy.Refuse()
			proxy.CutClients()
			time.AfterFunc(time.Second, proxy.Admit)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := pgtest.SchemaDSN(t)
			proxy, dsn := pgtest.Tap(t, direct)
			beside := pgtest.Open(t, pgtest.Through(direct))
			db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()), pgtest.Config(func(c *gorm.Config) { c.Logger = pgtest.NewLogger() }))
			must(t, work.Migrate(db, &Mail{}))
			const n = 200
			must(t, db.Exec(fmt.Sprintf("INSERT INTO mails (text, max_attempts) SELECT CASE g WHEN 100 THEN 'slow' ELSE 'fast' END, 1 FROM generate_series(1, %d) g", n)).Error)
			var ran atomic.Int64
			handle := func(_ context.Context, m *Mail) error {
				if ran.Add(1); m.Text == "slow" {
					<-time.After(500 * time.Millisecond)
					fail(proxy)
				}
				return nil
			}
			drain(t, worker(t, db, handle, work.Workers(1), work.Lease(time.Minute)))
			if now := states(t, beside); ran.Load() != n || now["done"] != n {
				t.Errorf("%d runs, %v", ran.Load(), now)
			}
		})
	}
}

// One statement asks for all jobs that were claimed in advance and have waited. A job that somebody has stopped or locked meanwhile does not begin.
func TestUnproven_areAskedForTogether(t *testing.T) {
	t.Parallel()
	direct := pgtest.SchemaDSN(t)
	proxy, dsn := pgtest.Tap(t, direct)
	beside := pgtest.Open(t, pgtest.Through(direct))
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(db, &Mail{}))
	const n = 1000
	must(t, db.Exec(fmt.Sprintf("INSERT INTO mails (text, max_attempts) SELECT 'fast', 1 FROM generate_series(1, %d) g", n)).Error)
	var asks atomic.Int64
	proxy.OnQuery(func(sql string) wiretap.Action {
		if strings.Contains(sql, question) {
			asks.Add(1)
		}
		return wiretap.Pass
	})
	ran := map[int64]string{}
	var stopped, changed int64
	handle := func(_ context.Context, m *Mail) error {
		if _, again := ran[m.ID]; again {
			t.Errorf("job %d ran twice", m.ID)
		}
		ran[m.ID] = m.Text
		if stopped != 0 || len(ran)%20 != 0 {
			return nil
		}
		var waiting []int64
		must(t, beside.Model(&Mail{}).Where("state = 'running' AND id > ?", m.ID).Order("id").Pluck("id", &waiting).Error)
		if len(waiting) < 7 { // too few were claimed in advance
			return nil
		}
		stopped, changed = waiting[3], waiting[4]
		must(t, beside.Exec("UPDATE mails SET state = 'dead' WHERE id = ?", stopped).Error)
		must(t, beside.Exec("UPDATE mails SET text = 'changed' WHERE id = ?", changed).Error)
		asks.Store(0)
		<-time.After(500 * time.Millisecond)
		return nil
	}
	drain(t, worker(t, db, handle, work.Workers(1), work.Lease(time.Minute)))
	if now := states(t, beside); now["done"] != n-1 || now["dead"] != 1 {
		t.Error(now)
	}
	if _, is := ran[stopped]; is || stopped == 0 {
		t.Errorf("job %d ran, which somebody had stopped", stopped)
	}
	if text := ran[changed]; text != "changed" {
		t.Errorf("the handler got the row as it was before somebody changed it: %q", text)
	}
	if got := asks.Load(); got == 0 || got > 5 {
		t.Errorf("%d statements asked", got)
	}
}
