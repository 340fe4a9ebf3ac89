package pgtest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

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
		"through":  {pgtest.Through(pgtest.SchemaDSN(t)), pgtest.Schema()},
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
				t.Errorf("%d rows in the test's own schema, want 1: %v", n, err)
			}
			if err := pgtest.SQLDB(t, pgtest.Schema()).QueryRow("select count(*) from things").Scan(&n); err != nil || n != 1 {
				t.Errorf("%d rows in the test's own schema, want 1: %v", n, err)
			}
			if err := pgtest.Conn(t).QueryRow(context.Background(), "select count(*) from things").Scan(&n); err == nil {
				t.Error("the table is in the schema that all tests share")
			}
		})
	}
}

type plugin struct{ initialized *gorm.DB }

func (p *plugin) Name() string { return "plugin" }

func (p *plugin) Initialize(db *gorm.DB) error {
	p.initialized = db
	if db.SkipDefaultTransaction {
		return errors.New("it wants transactions")
	}
	return nil
}

func TestOptions(t *testing.T) {
	t.Parallel()
	t.Run("reach GORM", func(t *testing.T) {
		t.Parallel()
		p := &plugin{}
		db := pgtest.Open(t, pgtest.Plugin(p), pgtest.MaxConns(3), pgtest.Param("work_mem", "7MB"),
			pgtest.Config(func(c *gorm.Config) { c.TranslateError = true }))
		pool, err := db.DB()
		if err != nil {
			t.Fatal(err)
		}
		if p.initialized == nil || !db.TranslateError || pool.Stats().MaxOpenConnections != 3 {
			t.Errorf("plugin %v, config %v, %d connections", p.initialized, db.TranslateError, pool.Stats().MaxOpenConnections)
		}
		var setting string
		if err := db.Raw("show work_mem").Scan(&setting).Error; err != nil || setting != "7MB" {
			t.Errorf("work_mem %s: %v", setting, err)
		}
	})
	t.Run("that mean nothing are refused", func(t *testing.T) {
		t.Parallel()
		for want, test := range map[string]func(testing.TB){
			"PrepareStmt means nothing to SQLDB":                    func(t testing.TB) { pgtest.SQLDB(t, pgtest.PrepareStmt()) },
			"Plugin, SkipDefaultTransaction means nothing to SQLDB": func(t testing.TB) { pgtest.SQLDB(t, pgtest.Plugin(&plugin{}), pgtest.SkipDefaultTransaction()) },
			"Config, MaxConns means nothing to Conn":                func(t testing.TB) { pgtest.Conn(t, pgtest.Config(nil), pgtest.MaxConns(1)) },
			"it wants transactions":                                 func(t testing.TB) { pgtest.Open(t, pgtest.Plugin(&plugin{}), pgtest.SkipDefaultTransaction()) },
			"failed to connect":                                     func(t testing.TB) { pgtest.Open(t, pgtest.Through("postgres://x@127.0.0.1:1/x?sslmode=disable")) },
			"3D000":                                                 func(t testing.TB) { pgtest.Conn(t, pgtest.Param("database", "nobody's")) },
		} {
			if said := failing(t, test); !strings.Contains(said, want) {
				t.Errorf("says %q, want %q", said, want)
			}
		}
	})
	t.Run("SimpleProtocol prepares nothing", func(t *testing.T) {
		t.Parallel()
		tap, dsn := pgtest.Tap(t, pgtest.DSN(t))
		for _, query := range []func(*int) error{
			func(n *int) error {
				return pgtest.Open(t, pgtest.Through(dsn), pgtest.SimpleProtocol()).Raw("select ?::int", 1).Scan(n).Error
			},
			func(n *int) error {
				return pgtest.SQLDB(t, pgtest.Through(dsn), pgtest.SimpleProtocol()).QueryRow("select $1::int", 1).Scan(n)
			},
			func(n *int) error {
				return pgtest.Conn(t, pgtest.Through(dsn), pgtest.SimpleProtocol()).QueryRow(context.Background(), "select $1::int", 1).Scan(n)
			},
		} {
			var n int
			if err := query(&n); err != nil || n != 1 {
				t.Error(n, err)
			}
		}
		if prepared := tap.Prepared(); len(prepared) > 0 {
			t.Errorf("prepared %q", prepared)
		}
	})
}

func TestSchemaIsDropped(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("test", func(t *testing.T) {
		if err := pgtest.SQLDB(t, pgtest.Schema()).QueryRow("select current_schema()").Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	var left int
	err := pgtest.SQLDB(t).QueryRow("select count(*) from pg_namespace where nspname = $1", name).Scan(&left)
	if err != nil || left != 0 || !strings.HasPrefix(name, "test_") {
		t.Errorf("schema %q: %d left, %v", name, left, err)
	}
}

func TestPoolIsClosed(t *testing.T) {
	t.Parallel()
	var db *gorm.DB
	var pool *sql.DB
	t.Run("test", func(t *testing.T) {
		db, pool = pgtest.Open(t), pgtest.SQLDB(t)
	})
	if err := pool.Ping(); err == nil {
		t.Error("the pool is open")
	}
	if err := db.Exec("select 1").Error; err == nil {
		t.Error("GORM's pool is open")
	}
}

func TestDatabase(t *testing.T) {
	t.Parallel()
	var dsn string
	t.Run("test", func(t *testing.T) {
		dsn = pgtest.Database(t)
		if dsn == pgtest.DSN(t) || dsn == pgtest.Database(t) {
			t.Error("the same database twice")
		}
		// An advisory lock in one database is not a lock in another.
		key := pgtest.Key(t)
		lock(t, pgtest.Conn(t, pgtest.Through(dsn)), key)
		if pgtest.Held(t, key) {
			t.Error("the lock of another database is seen")
		}
		if !pgtest.Observe(t, dsn).Held(t, key) {
			t.Error("the lock is not seen in its database")
		}
	})
	if conn, err := pgx.Connect(context.Background(), dsn); err == nil {
		_ = conn.Close(context.Background())
		t.Error("the database is not dropped")
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	keys := map[lockkey.Key]bool{}
	for range 100 {
		keys[pgtest.Key(t)] = true
		keys[pgtest.Key(t, "part", 1)] = true
		keys[pgtest.PairKey(t)] = true
	}
	if len(keys) != 300 {
		t.Errorf("%d different keys, want 300", len(keys))
	}
	if key := pgtest.Key(t, "part"); !strings.Contains(key.String(), "TestKey") || !strings.Contains(key.String(), "part") {
		t.Errorf("%s does not name the test and its part", key)
	}
	if said := failing(t, func(t testing.TB) { pgtest.Key(t, 1.5) }); !strings.Contains(said, "float") {
		t.Errorf("a part that cannot name a lock: %q", said)
	}
}

func ExampleNewExample() {
	t := pgtest.NewExample()
	defer t.End()
	db := pgtest.Open(t, pgtest.Schema())
	var one int
	fmt.Println(db.Raw("select 1").Scan(&one).Error, one)
	// Output: <nil> 1
}

func TestExample_failsByPanic(t *testing.T) {
	t.Parallel()
	ended := false
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "failed to connect") || !ended {
			t.Errorf("%s, ended %t", said, ended)
		}
	}()
	example := pgtest.NewExample()
	defer example.End()
	example.Cleanup(func() { ended = true })
	pgtest.Open(example, pgtest.Through("postgres://x@127.0.0.1:1/x?sslmode=disable"))
}
