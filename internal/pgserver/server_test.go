package pgserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/jackc/pgx/v5"
)

func start(t testing.TB, opts ...pgserver.Option) *pgserver.Server {
	t.Helper()
	s, err := pgserver.Start(context.Background(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func TestServer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	at := time.Now()
	step := func(name string) { t.Logf("%s %s", name, time.Since(at)); at = time.Now() }
	s := start(t)
	step("start")
	dsn, err := s.CreateDatabase(ctx, `it's "odd" ü/?`)
	if err != nil {
		t.Fatal(err)
	}
	step("createdb")
	c := connect(t, dsn)
	var name string
	if err := c.QueryRow(ctx, "select current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	t.Log(name)
	if err := s.Crash(); err != nil {
		t.Fatal(err)
	}
	step("crash")
	if err := s.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	step("restart")
	b, err := s.Standby(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	step("standby")
	if err := b.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	step("promote")
	if err := b.Shutdown(); err != nil {
		t.Fatal(err)
	}
	step("shutdown")
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	step("pause")
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	step("stop")
}
