package locks_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lockkey"
)

// widget is a model without hooks and without a version: all it can need is a lock.
type widget struct {
	ID      int64
	Name    string
	N       int
	MakerID *int64
	Maker   *widgetMaker
	Parts   []widgetPart
}

type widgetMaker struct {
	ID   int64
	Name string
}

type widgetPart struct {
	ID       int64
	WidgetID int64
	Name     string
}

// lookout is a database behind a proxy that looks, whenever a statement on the widgets is about to reach the server,
// whether the key is held.
type lookout struct {
	db    *gorm.DB // through the proxy, with the plugin
	plain *gorm.DB // neither
	proxy *wiretap.Proxy

	mu     sync.Mutex
	key    lockkey.Key
	watch  bool
	unheld []string
}

func newLookout(t *testing.T, opts ...pgtest.Option) *lookout {
	t.Helper()
	s := &lookout{}
	dsn := pgtest.SchemaDSN(t)
	s.plain = pgtest.Open(t, pgtest.Through(dsn))
	if err := s.plain.AutoMigrate(&widgetMaker{}, &widget{}, &widgetPart{}); err != nil {
		t.Fatal(err)
	}
	var tapped string
	s.proxy, tapped = pgtest.Tap(t, dsn)
	plugin := gormlock.New()
	t.Cleanup(func() { _ = plugin.Close() })
	s.db = pgtest.Open(t, append(opts, pgtest.Through(tapped), pgtest.Plugin(plugin))...)
	observer := pgtest.Observe(t, dsn)
	s.proxy.OnQuery(func(sql string) wiretap.Action {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.watch && onWidgets(sql) && !observer.Held(t, s.key) {
			s.unheld = append(s.unheld, sql)
		}
		return wiretap.Pass
	})
	return s
}

func onWidgets(sql string) bool { return strings.Contains(sql, "widget") }

// seed stores a widget with a maker and two parts.
func (s *lookout) seed(t *testing.T) *widget {
	t.Helper()
	return seedIn(t, s.plain)
}

func seedIn(t *testing.T, db *gorm.DB) *widget {
	t.Helper()
	w := &widget{Name: "seed", Maker: &widgetMaker{Name: "m"}, Parts: []widgetPart{{Name: "a"}, {Name: "b"}}}
	if err := db.Create(w).Error; err != nil {
		t.Fatal(err)
	}
	return w
}

// begin looks at the key from here on.
func (s *lookout) begin(key lockkey.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.watch, s.unheld = key, true, nil
	s.proxy.Reset()
}

// end returns what was executed since begin, and what of it on the widgets while the key was not held.
func (s *lookout) end() (executed, unheld []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = false
	// The driver looks whether a connection that was idle for a second is alive.
	pings := func(sql string) bool { return sql == "-- ping" }
	return slices.DeleteFunc(s.proxy.Statements(), pings), s.unheld
}

func countLocks(statements []string) (n int) {
	for _, sql := range statements {
		if strings.Contains(sql, "advisory") {
			n++
		}
	}
	return n
}

func countOnWidgets(statements []string) (n int) {
	for _, sql := range statements {
		if onWidgets(sql) {
			n++
		}
	}
	return n
}

// rivalHolds takes keys in a transaction of its own and keeps them until the returned function, or the end of the test, frees them.
func rivalHolds(t *testing.T, call string, keys ...lockkey.Key) (free func()) {
	t.Helper()
	ctx := context.Background()
	conn := pgtest.Conn(t)
	if _, err := conn.Exec(ctx, "begin"); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		sql, args := pgtest.OfKey(call, key)
		if _, err := conn.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	var once sync.Once
	free = func() {
		once.Do(func() {
			if _, err := conn.Exec(ctx, "rollback"); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(free)
	return free
}

const (
	exclusively = "pg_advisory_xact_lock"
	together    = "pg_advisory_xact_lock_shared"
)

// backendOf is the server process that runs a transaction.
func backendOf(t *testing.T, tx *gorm.DB) (pid int) {
	t.Helper()
	if err := tx.Raw("select pg_backend_pid()").Scan(&pid).Error; err != nil {
		t.Fatal(err)
	}
	return pid
}

// countOf counts the statements that name a bigint key.
func countOf(statements []string, id int64) (n int) {
	for _, sql := range statements {
		if strings.Contains(sql, "advisory") && strings.Contains(sql, strconv.FormatInt(id, 10)) {
			n++
		}
	}
	return n
}
