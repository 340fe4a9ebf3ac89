package work_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/work"
)

// deferred is DDL that makes the server refuse an update of the bad job at the commit, after it has returned the rows.
func deferred(condition string) string {
	return strings.Replace(trigger(condition, raise), "CREATE TRIGGER refuse BEFORE UPDATE ON mails", "CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON mails DEFERRABLE INITIALLY DEFERRED", 1)
}

// Changes that the server undoes at the commit have not happened: no event reports them, and no handler ends because of them.
func TestRefused_atTheCommit(t *testing.T) {
	t.Parallel()
	log := pgtest.NewLogger()
	db := openWith(t, pgtest.Plugin(gormlock.New()), pgtest.Config(func(c *gorm.Config) { c.Logger = log }))
	bad := enqueue(t, db, "bad")[0]
	must(t, db.Exec(deferred("NEW.state = 'ready'")).Error)
	began, release := make(chan context.Context, 1), make(chan struct{})
	var told pgtest.Hearer
	w := worker(t, db, func(ctx context.Context, m *Mail) error {
		if m.Text == "bad" {
			began <- ctx
			<-release
		}
		return nil
	}, work.Observer(&told))
	end := start(t, w)
	ctx := <-began
	const others = 10
	must(t, db.Exec(`WITH a AS (UPDATE mails SET claimed_until = now() - interval '1 minute')
		INSERT INTO mails (text, state, claimed_by, claimed_until) SELECT 'good', 'running', 'dead', now() - interval '1 minute' FROM generate_series(1, ?)`, others).Error)
	eventually(t, "the others are done", func() bool { return states(t, db)["done"] == others })
	eventually(t, "the refusal is logged", func() bool {
		return slices.ContainsFunc(log.Lines(), func(line string) bool { return strings.Contains(line, fmt.Sprintf("take over jobs [%d]", bad.ID)) })
	})
	if ctx.Err() != nil {
		t.Errorf("the handler ends for what was taken back: %v", context.Cause(ctx))
	}
	close(release)
	eventually(t, "all are done", func() bool { return states(t, db)["done"] == others+1 })
	must(t, end())
	taken := map[string]int{}
	for _, e := range told.Events() {
		if e.Kind == observe.TakenOver {
			taken[e.Key]++
		}
	}
	if len(taken) != others || taken[fmt.Sprint(bad.ID)] != 0 {
		t.Errorf("taken over %v", taken)
	}
	for id, n := range taken {
		if n != 1 {
			t.Errorf("job %s is taken over %d times", id, n)
		}
	}
}

// A renewal that the server undoes at the commit is tried again soon, and the other leases are renewed.
func TestRefused_renewalAtTheCommit(t *testing.T) {
	t.Parallel()
	renewedAgain(t, deferred("OLD.state = 'running' AND NEW.state = 'running' AND nextval('tries') <= 5"))
}
