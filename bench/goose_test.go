package bench

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/pressly/goose/v3/lock"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// BenchmarkGooseLock compares an uncontended lock with goose's lock, which takes a connection of the pool, as a migration does.
func BenchmarkGooseLock(b *testing.B) {
	db := pool(b, pgtest.DSN(b))
	m, err := sessionlock.Open(b.Context(), pgtest.DSN(b))
	must(b, err)
	defer func() { _ = m.Close(context.Background()) }()
	for _, n := range []struct {
		name  string
		crowd int
	}{{"goroutines=1", 1}, {"goroutines=8", 8}} {
		b.Run(n.name, func(b *testing.B) {
			paired(b, 100*time.Millisecond,
				func(until time.Time) int { return crowd(b, n.crowd, until, goose(db)) },
				func(until time.Time) int { return crowd(b, n.crowd, until, managed(m)) })
		})
	}
}

func goose(db *sql.DB) once {
	return func(ctx context.Context, key lockkey.Key) error {
		id, _ := key.Int64()
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(id))
		if err != nil {
			return err
		}
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := locker.SessionLock(ctx, conn); err != nil {
			return err
		}
		return locker.SessionUnlock(ctx, conn)
	}
}
