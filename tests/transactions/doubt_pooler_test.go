package transactions_test

import (
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Between the program and the server stands a pooler, which answers in the place of a server that it has lost, or a wrapper that hides the driver and
// so the state of its connection, or both. A commit whose answer is lost is in doubt all the same.
func TestCommitInDoubt_between(t *testing.T) {
	t.Parallel()
	poolers := map[string]func(t testing.TB, dsn string) string{"nothing": func(_ testing.TB, dsn string) string { return dsn }}
	for pooler, before := range pgtest.Poolers {
		poolers[pooler] = before
	}
	for pooler, before := range poolers {
		for driver, opts := range map[string][]pgtest.Option{"pgx": nil, "a wrapper": {pgtest.Wrapped()}} {
			for _, mode := range []string{"exec", "simple_protocol"} {
				for pool, plugin := range map[string]*gormlock.Plugin{"our pool": gormlock.New(), "plain": gormlock.New(gormlock.PlainTransactions())} {
					t.Run(pooler+"/"+driver+"/"+mode+"/"+pool, func(t *testing.T) {
						t.Parallel()
						t.Cleanup(func() { _ = plugin.Close() })
						direct := pgtest.Database(t)
						beside := pgtest.Open(t, pgtest.Through(direct), pgtest.Plugin(gormlock.New()))
						stand.Must(t, beside.AutoMigrate(&stand.Account{}))
						line, dsn := pgtest.Tap(t, direct)
						db := pgtest.Open(t, append(opts, pgtest.Through(before(t, dsn)), pgtest.Plugin(plugin), pgtest.Param("default_query_exec_mode", mode))...)
						doubtsCommits(t, line, db, beside)
					})
				}
			}
		}
	}
}

func doubtsCommits(t *testing.T, line *wiretap.Proxy, db, beside *gorm.DB) {
	t.Helper()
	for way, in := range map[string]func(write func(tx *gorm.DB) error) error{
		"its own transaction": func(write func(tx *gorm.DB) error) error { return write(db) },
		"Transaction": func(write func(tx *gorm.DB) error) error {
			return gormlock.Transaction(db, write, gormlock.Attempts(3))
		},
		"Transaction with a lock": func(write func(tx *gorm.DB) error) error {
			return gormlock.Transaction(db, write, gormlock.Attempts(3), gormlock.Locking(gormlock.Key(t.Name())))
		},
	} {
		for act, stored := range map[wiretap.Action]int64{wiretap.CutRequest: 1, wiretap.CutAnswer: 2} {
			a := stand.Account{Balance: 1}
			pgtest.Eventually(t, "a connection", func() bool { return db.Create(&a).Error == nil })
			times := 0
			line.OnQuery(func(sql string) wiretap.Action {
				if strings.Contains(strings.ToUpper(sql), "COMMIT") {
					return act
				}
				return wiretap.Pass
			})
			err := in(func(tx *gorm.DB) error { times++; return tx.Model(&a).Update("balance", 2).Error })
			line.OnQuery(nil)
			if err == nil || !strings.Contains(err.Error(), "whether this transaction was committed is not known") || errors.Is(err, driver.ErrBadConn) || pgconn.SafeToRetry(err) || times != 1 {
				t.Errorf("%s, %v, ran %d times: %v", way, act, times, err)
			}
			pgtest.Eventually(t, "the server has ended it", func() bool { return stand.Row[stand.Account](t, beside, a.ID).Balance == stored })
			pgtest.Eventually(t, "a connection", func() bool { return db.Exec("SELECT 1").Error == nil })
			if err := db.Model(&a).Update("balance", 3).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("%s, %v, updated again: %v", way, act, err)
			}
		}
	}
}
