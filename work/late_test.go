package work_test

import (
	"context"
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

// The server executes a claim while the network is down. Its jobs are handled when the network is back, long before their leases end.
func TestClaim_thatIsExecutedWhileTheNetworkIsGone(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	proxy, through := pgtest.Tap(t, dsn)
	direct, db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New())), pgtest.Open(t, pgtest.Through(through), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(direct, &Mail{}))
	must(t, direct.Exec(`CREATE FUNCTION wait_in_claim() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.state = 'running' AND OLD.state = 'ready' THEN PERFORM pg_advisory_xact_lock_shared(hashtext(current_schema)); END IF; RETURN NEW; END $$`).Error)
	must(t, direct.Exec("CREATE TRIGGER wait_in_claim BEFORE UPDATE ON mails FOR EACH ROW EXECUTE FUNCTION wait_in_claim()").Error)
	must(t, work.Enqueue(direct, &Mail{Text: "a", Job: work.Job{MaxAttempts: 1}}))

	var seen texts
	w, err := work.New(db, func(_ context.Context, m *Mail) error {
		seen.add(m.Text)
		return nil
	}, work.Lease(time.Hour), work.Poll(50*time.Millisecond))
	must(t, err)
	asked, once := make(chan struct{}), atomic.Bool{}
	proxy.OnQuery(func(text string) wiretap.Action {
		if strings.HasPrefix(text, "UPDATE") && strings.Contains(text, "'running'") || strings.Contains(text, `"claimed_by"=`) {
			if once.CompareAndSwap(false, true) {
				close(asked)
			}
		}
		return wiretap.Pass
	})
	must(t, direct.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Exec("SELECT pg_advisory_xact_lock(hashtext(current_schema))").Error)
		run(t, w)
		<-asked
		eventually(t, "the claim waits", func() (waits bool) {
			must(t, direct.Raw("SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))").Scan(&waits).Error)
			return waits
		})
		proxy.Refuse()
		proxy.Cut()
		return nil
	}))
	is := func(wanted string) func() bool {
		return func() bool {
			var state string
			must(t, direct.Raw("SELECT state FROM mails").Scan(&state).Error)
			return state == wanted
		}
	}
	eventually(t, "the claim is executed", is("running"))
	proxy.Admit()
	eventually(t, "the job", is("done"))
	seen.mustBe(t, "a")
}
