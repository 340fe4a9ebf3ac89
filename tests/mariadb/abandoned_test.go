package mariadb_test

import (
	"context"
	"testing"
	"time"

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
		for late := time.Now().Add(10 * time.Second); pool.Stats().InUse > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("%s: %d connections are in use", number, pool.Stats().InUse)
			}
		}
	}
}
