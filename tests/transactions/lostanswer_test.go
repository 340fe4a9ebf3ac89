package transactions_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// The rows of a query that writes may arrive, and the connection end before its commit. Then nobody says that it was not committed.
func TestRows_ofAWriteWhoseCommitIsNotHeardOf(t *testing.T) {
	t.Parallel()
	direct := pgtest.SchemaDSN(t)
	proxy, through := pgtest.Tap(t, direct)
	beside := stand.Versioned(t, []any{&stand.Account{}}, pgtest.Through(direct))
	db := pgtest.Open(t, pgtest.Through(through), pgtest.Plugin(gormlock.New()))
	stand.MustDo(t, beside.Exec(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.balance = 2 THEN PERFORM pg_sleep(60); END IF; RETURN NULL; END $$`))
	stand.MustDo(t, beside.Exec(`CREATE CONSTRAINT TRIGGER wait AFTER UPDATE ON accounts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()`))
	for range 3 {
		stand.Made(t, beside, stand.Account{Balance: 1, Note: strings.Repeat("long ", 20_000)}) // so that rows are sent before the commit
	}
	over := make(chan error, 1)
	var rows []stand.Account
	go func() {
		over <- db.Raw("UPDATE accounts SET balance = 2, version = version + 1 RETURNING *").Find(&rows).Error
	}()
	pid := 0
	pgtest.Eventually(t, "the commit waits", func() bool {
		stand.MustDo(t, beside.Raw("SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE ?", "UPDATE accounts%").Scan(&pid))
		return pid > 0
	})
	proxy.CutClients()
	err := <-over
	if err == nil || len(rows) == 0 {
		t.Fatal(len(rows), err)
	}
	stand.MustDo(t, beside.Exec("SELECT pg_terminate_backend(?)", pid))
	stand.MustDo(t, beside.Exec("UPDATE accounts SET balance = 3, version = version + 1"))
	proxy.Cut()
	for i := range rows {
		rows[i].Balance = 4
		if err := db.Save(&rows[i]).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
			t.Errorf("row %d was saved: %v", i, err)
		}
	}
}
