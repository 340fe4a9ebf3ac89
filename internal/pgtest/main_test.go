package pgtest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) {
	pgtest.Main(m, "github.com/gormlock/gormlock/internal/pgtest_test.goroutineThatMayStay")
}

// childMode makes the test binary, when started again, a package whose tests make the mistakes that Main finds.
const childMode = "PGTEST_TEST_CHILD"

func TestChild(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	switch os.Getenv(childMode) {
	case "clean":
		var name string
		db := pgtest.Open(t, pgtest.PrepareStmt(), pgtest.Schema())
		if err := db.Raw("select current_database()").Scan(&name).Error; err != nil {
			t.Fatal(err)
		}
		fmt.Printf("database=%s.\n", name)
	case "lock left":
		conn, err := pgx.Connect(ctx, pgtest.DSN(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, "select pg_advisory_lock(7, 42)"); err != nil {
			t.Fatal(err)
		}
		leftConn = conn
	case "key left":
		conn := pgtest.Conn(t)
		key := pgtest.Key(t)
		id, _ := key.Int64()
		if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", id); err != nil {
			t.Fatal(err)
		}
	case "goroutine left":
		go leftGoroutine()
	case "goroutine that may stay":
		go goroutineThatMayStay()
	}
}

var leftConn *pgx.Conn // global, or the garbage collector would close it

func leftGoroutine() { select {} }

func goroutineThatMayStay() { select {} }

func TestMainEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode string
		env  []string
		ok   bool
		says []string
	}{
		{"clean", nil, true, []string{"database=gormlock_", "PASS"}},
		{"nothing used", []string{"GORMLOCK_TEST_DSN=", "GORMLOCK_PG_BIN=/nonexistent"}, true, []string{"PASS"}},
		{"lock left", nil, false, []string{"advisory locks are left in database gormlock_", "granted ExclusiveLock on (7, 42, 2)", "select pg_advisory_lock(7, 42)"}},
		{"key left", nil, false, []string{"TestChild", "should be free", "ExclusiveLock"}},
		{"goroutine left", nil, false, []string{"goroutines are left (1)", "leftGoroutine"}},
		{"goroutine that may stay", nil, true, []string{"PASS"}},
		{"clean", []string{"GORMLOCK_TEST_DSN=", "GORMLOCK_PG_BIN=/nonexistent"}, false, []string{"GORMLOCK_PG_BIN", "/nonexistent holds no PostgreSQL server", "--- FAIL"}},
		{"clean", []string{"GORMLOCK_TEST_DSN=postgres://postgres@127.0.0.1:1/x"}, false, []string{"127.0.0.1:1", "--- FAIL"}},
	} {
		t.Run(c.mode+strings.Join(c.env, ","), func(t *testing.T) {
			t.Parallel()
			out, err := runChild(c.mode, c.env...)
			if (err == nil) != c.ok {
				t.Errorf("exit %v", err)
			}
			for _, word := range c.says {
				if !strings.Contains(out, word) {
					t.Errorf("it does not say %q", word)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

func runChild(mode string, env ...string) (string, error) {
	child := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
	child.Env = append(append(os.Environ(), childMode+"="+mode), env...)
	out, err := child.CombinedOutput()
	return string(out), err
}

// On a server that we did not start, the run has its own database, and drops it at the end.
func TestGivenServer(t *testing.T) {
	t.Parallel()
	s := pgtest.Fresh(t)
	for name, dsn := range map[string]string{
		"as a URL":     s.DSN("postgres"),
		"as key=value": fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres sslmode=disable", s.Host(), s.Port()),
	} {
		t.Run(name, func(t *testing.T) {
			var names []string
			for range 2 {
				out, err := runChild("clean", "GORMLOCK_TEST_DSN="+dsn, "GORMLOCK_PG_BIN=/nonexistent")
				_, rest, found := strings.Cut(out, "database=")
				used, _, _ := strings.Cut(rest, ".")
				if err != nil || !found {
					t.Fatal(err, out)
				}
				names = append(names, used)
			}
			if names[0] == names[1] || names[0] == "postgres" {
				t.Errorf("the runs used %v, want a database each", names)
			}
		})
	}
	var left int
	conn := pgtest.Conn(t, pgtest.Through(s.DSN("postgres")))
	err := conn.QueryRow(context.Background(), "select count(*) from pg_database where datname like 'gormlock%'").Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d databases are left: %v", left, err)
	}
	out, err := runChild("lock left", "GORMLOCK_TEST_DSN="+s.DSN("postgres"))
	if err == nil || !strings.Contains(out, "advisory locks are left") {
		t.Errorf("a lock left on a given server: %v %s", err, out)
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	if os.Getenv("GORMLOCK_TEST_DSN") != "" {
		if said := failing(t, func(t testing.TB) { pgtest.Server(t) }); !strings.Contains(said, "pgtest.Fresh") {
			t.Errorf("says %q", said)
		}
		return
	}
	if s := pgtest.Server(t); !strings.Contains(pgtest.DSN(t), fmt.Sprint(s.Port())) {
		t.Errorf("%s is not on port %d", pgtest.DSN(t), s.Port())
	}
}
