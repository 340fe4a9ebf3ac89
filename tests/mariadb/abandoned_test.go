package mariadb_test

import (
	"context"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A transaction that the server has rolled back gives its connection back when its ctx ends, as any other: nobody calls Rollback.
func TestAbandoned_afterADeadlock(t *testing.T) {
	t.Parallel()
	db := mariaserver.Open(t, []any{&plain{}})
	pool, err := db.DB()
	stand.Must(t, err)
	for _, number := range []string{"1213", "1020"} {
		ctx, cancel := context.WithCancel(t.Context())
		tx := db.WithContext(ctx).Begin()
		if err := tx.Exec("SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = " + number).Error; err == nil {
			t.Error("no deadlock")
		}
		cancel()
		pgtest.Eventually(t, number+" gives its connection back", func() bool { return pool.Stats().InUse == 0 })
	}
}
