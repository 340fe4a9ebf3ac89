package pgtest_test

import (
	"context"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type thing struct {
	ID   int
	Name string
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]pgtest.Option{
		"plain":    {pgtest.Schema()},
		"prepared": {pgtest.Schema(), pgtest.PrepareStmt(), pgtest.MaxConns(1)},
		"simple":   {pgtest.Schema(), pgtest.SimpleProtocol(), pgtest.SkipDefaultTransaction()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.Open(t, opts...)
			if err := db.AutoMigrate(&thing{}); err != nil {
				t.Fatal(err)
			}
			if err := db.Create(&thing{Name: "a"}).Error; err != nil {
				t.Fatal(err)
			}
			var n int
			if err := pgtest.Conn(t, pgtest.Schema()).QueryRow(context.Background(), "select count(*) from things").Scan(&n); err != nil || n != 1 {
				t.Fatal(n, err)
			}
		})
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a, b := pgtest.Conn(t), pgtest.Conn(t)
	key := pgtest.Key(t)
	id, _ := key.Int64()
	if _, err := a.Exec(ctx, "select pg_advisory_lock($1)", id); err != nil {
		t.Fatal(err)
	}
	if !pgtest.Held(t, key) {
		t.Fatal("not held")
	}
	done := make(chan error)
	go func() {
		_, err := b.Exec(ctx, "select pg_advisory_lock_shared($1)", id)
		done <- err
	}()
	pgtest.WaitBlocked(t, key, 1)
	pgtest.WaitBackendBlocked(t, int(b.PgConn().PID()))
	t.Log(pgtest.Locks(t, key))
	pgtest.Kill(t, int(a.PgConn().PID()))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	pgtest.Kill(t, int(b.PgConn().PID()))
}
