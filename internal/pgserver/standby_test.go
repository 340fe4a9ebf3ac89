package pgserver_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestStandby(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	primary := start(t, pgserver.Setting("work_mem", "5MB"))
	writer := connect(t, primary.DSN("postgres"))
	execute(t, writer, "create table t (n int)", "insert into t select 1 from generate_series(1, 1000)")
	standby, err := primary.Standby(ctx, pgserver.Setting("temp_buffers", "1MB"))
	if err != nil {
		t.Fatal(err)
	}
	pgtest.StopAtEnd(t, standby)
	reader := connect(t, standby.DSN("postgres"))
	if got := value(t, reader, "select count(*) from t"); got != "1000" {
		t.Errorf("%s rows at once, want 1000", got)
	}
	for setting, want := range map[string]string{"work_mem": "5MB", "temp_buffers": "1MB", "port": strconv.Itoa(standby.Port())} {
		if got := value(t, reader, "current_setting('"+setting+"')"); got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
	if _, err := reader.Exec(ctx, "insert into t values (2)"); err == nil {
		t.Error("a standby takes writes")
	}
	execute(t, writer, "insert into t values (2)")
	pgtest.Eventually(t, "later row on the standby", func() bool { return value(t, reader, "select count(*) from t") == "1001" })
	if got := value(t, writer, "select count(*) from pg_replication_slots"); got != "0" {
		t.Errorf("%s replication slots are left", got)
	}

	if err := errors.Join(standby.Crash(), standby.Restart(ctx)); err != nil {
		t.Fatal(err)
	}
	execute(t, writer, "insert into t values (3)")
	reader = connect(t, standby.DSN("postgres"))
	pgtest.Eventually(t, "row on the standby after its crash", func() bool { return value(t, reader, "select count(*) from t") == "1002" })

	if err := primary.Crash(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	execute(t, reader, "insert into t values (4)")
	if err := standby.Promote(ctx); err == nil {
		t.Error("a server that is no standby can be promoted")
	}
}

func TestStandbyWhileWritesGoOn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	primary := start(t)
	writer := connect(t, primary.DSN("postgres"))
	execute(t, writer, "create table t (n int primary key, x text)")
	done := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			if _, err := writer.Exec(context.Background(), "insert into t values ($1, repeat('x', 500))", n); err != nil {
				t.Error(err)
				break
			}
			if _, err := writer.Exec(context.Background(), "update t set x = 'y' where n = $1", n/2); err != nil {
				t.Error(err)
				break
			}
		}
		done <- n
	}()
	standby, err := primary.Standby(context.Background())
	cancel()
	n := <-done
	if err != nil {
		t.Fatal(err)
	}
	pgtest.StopAtEnd(t, standby)
	reader := connect(t, standby.DSN("postgres"))
	pgtest.Eventually(t, "row for row on the standby", func() bool { return value(t, reader, "select count(*) from t") == strconv.Itoa(n) })
	if err := standby.Promote(context.Background()); err != nil {
		t.Fatal(err)
	}
	if a, b := value(t, writer, "select md5(string_agg(t::text, ',' order by n)) from t"), value(t, reader, "select md5(string_agg(t::text, ',' order by n)) from t"); a != b {
		t.Error("the copy is not what the primary holds")
	}
}

func TestStandbyFails(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	primary := start(t)
	_, err := primary.Standby(ctx, pgserver.Setting("max_connections", "many"))
	mustFail(t, err, "max_connections")
	_, err = primary.Standby(ctx, pgserver.BinDir("/"))
	mustFail(t, err, "BinDir")
	if err := primary.Crash(); err != nil {
		t.Fatal(err)
	}
	_, err = primary.Standby(ctx)
	mustFail(t, err, "standby", "refused")
}
