package interop

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
)

// What docs/migrating-from-hibernate.md says beside the rules of TestHibernate.
func TestHibernateGuide(t *testing.T) {
	t.Parallel()
	eachJava(t, map[string]func(*testing.T, java){
		"the trigger and excluded columns": guideExcluded,
		"a wait without a bound":           guideWaitForever,
		"the tables beside ShedLock's":     guideShedLock,
	})
}

func guideExcluded(t *testing.T, j java) {
	must(t, j.db.Exec(gormlock.VersionTrigger("accounts", "version")).Error)
	countInJava := func(e entity) error { // all columns, and the version as it is
		return j.hibernate.one("update accounts set balance=$1,name=$2,views=$3 where id=$4 and version=$5", e.balance, e.name, e.views+1, e.id, *e.version)
	}
	a, e := j.account(t)
	must(t, countInJava(e))
	mustBeStaleInJava(t, j.hibernate.flush(&e))
	a = j.load(t, a.ID)
	must(t, j.db.Model(&a).Update("views", 5).Error)
	mustStale(t, j.db.Model(&a).Update("views", 6).Error)

	const condition = "(OLD.balance IS DISTINCT FROM NEW.balance)"
	must(t, j.db.Exec(`DROP TRIGGER gormlock_version_accounts ON accounts;
		CREATE TRIGGER gormlock_version_accounts BEFORE UPDATE ON accounts FOR EACH ROW
		WHEN `+condition+` EXECUTE FUNCTION gormlock_version_accounts()`).Error)
	if blocks := strings.Join(blocksOf(t, "../../docs/migrating-from-hibernate.md", "go"), "\n"); !strings.Contains(blocks, condition) {
		t.Error("the page has another condition")
	}
	a, e = j.account(t)
	must(t, countInJava(e))
	must(t, countInJava(e))
	must(t, j.db.Model(&a).Update("views", 5).Error)
	must(t, j.db.Model(&a).Update("views", 6).Error)
	must(t, j.hibernate.flush(&e))
	j.mustHave(t, a.ID, "new", 1)
	j.hibernate.exec(t, "update accounts set balance = 7 where id = $1", a.ID)
	j.mustHave(t, a.ID, "new", 2)
}

func guideWaitForever(t *testing.T, j java) {
	a, _ := j.account(t)
	j.hibernate.exec(t, "begin")
	j.hibernate.exec(t, "select a1_0.id from accounts a1_0 where a1_0.id=$1 for no key update", a.ID)
	pid, done := make(chan int, 1), make(chan error, 1)
	go func() {
		done <- gormlock.Transaction(j.db, func(tx *gorm.DB) error {
			var own int
			err := tx.Raw("SELECT pg_backend_pid()").Scan(&own).Error
			pid <- own
			if err != nil {
				return err
			}
			return gormlock.LockRow(tx, &a, gormlock.ForNoKeyUpdate)
		})
	}()
	pgtest.WaitBackendBlocked(t, <-pid)
	j.hibernate.exec(t, "commit")
	must(t, <-done)
}

func guideShedLock(t *testing.T, j java) {
	j.hibernate.exec(t, "CREATE TABLE shedlock (name VARCHAR(64) NOT NULL, lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name), note text)")
	pool, err := j.db.DB()
	must(t, err)
	if _, err := lease.New(t.Context(), pool, lease.ShedLock()); err == nil || !strings.Contains(err.Error(), "gormlock_fence") {
		t.Errorf("without the table of tokens: %v", err)
	}
	must(t, lease.Migrate(t.Context(), pool, lease.ShedLock()))
	leases, err := lease.New(t.Context(), pool, lease.ShedLock())
	must(t, err)
	must(t, leases.Close(t.Context()))
	j.hibernate.exec(t, "select note from shedlock") // the table is Java's
}
