package inspect_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// rivals are transactions that wait for locks of holder.
type rivals struct {
	t      *testing.T
	db     *gorm.DB
	holder *gorm.DB
	want   map[int]string // the key that the wait of each process must show
	done   []chan error
}

// crowd makes tables, and a holder that begins.
func crowd(t *testing.T) *rivals {
	t.Helper()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema(), pgtest.MaxConns(20))
	sqlDB, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{gormlock.MigrateOnce(db), fence.Migrate(t.Context(), sqlDB), lease.Migrate(t.Context(), sqlDB)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		"CREATE TABLE aorders (id int PRIMARY KEY, n int)", "INSERT INTO aorders VALUES (1, 0)",
		"CREATE TABLE zorders (id int PRIMARY KEY, n int)", "INSERT INTO zorders VALUES (1, 0)",
		"CREATE TABLE invoices (id int PRIMARY KEY)",
		"CREATE TABLE notes (id int PRIMARY KEY)",
	} {
		if err := db.Exec(sql).Error; err != nil {
			t.Fatal(err)
		}
	}
	return &rivals{t: t, db: db, holder: db.Begin(), want: map[int]string{}}
}

func backend(t *testing.T, tx *gorm.DB) (pid int) {
	t.Helper()
	if err := tx.Raw("SELECT pg_backend_pid()").Scan(&pid).Error; err != nil {
		t.Fatal(err)
	}
	return pid
}

// waits begins a transaction that must wait in run, and whose wait must be shown as want.
func (r *rivals) waits(want string, run func(tx *gorm.DB) error) {
	r.t.Helper()
	tx := r.db.WithContext(context.WithoutCancel(r.t.Context())).Begin()
	at := backend(r.t, tx)
	r.want[at] = want
	done := make(chan error, 1)
	go func() {
		err := run(tx)
		tx.Rollback()
		done <- err
	}()
	r.done = append(r.done, done)
	pgtest.WaitBackendBlocked(r.t, at)
}

func (r *rivals) executes(want string, statements ...string) {
	r.t.Helper()
	r.waits(want, func(tx *gorm.DB) error {
		for _, sql := range statements {
			if err := tx.Exec(sql).Error; err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *rivals) end() {
	r.t.Helper()
	if err := r.holder.Rollback().Error; err != nil {
		r.t.Error(err)
	}
	for _, done := range r.done {
		if err := <-done; err != nil {
			r.t.Error(err)
		}
	}
}

// All wait for one transaction, each for another of its locks. Each wait must show its own lock: in the list, in the tree and on the page.
func TestSnapshot_eachWaitSaysItsOwnPlace(t *testing.T) {
	t.Parallel()
	r := crowd(t)
	key, report := pgtest.Key(t), lockkey.Of("report", 1)
	sqlDB, err := r.db.DB()
	if err != nil {
		t.Fatal(err)
	}
	token, err := fence.Issue(t.Context(), sqlDB, report)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := lease.New(t.Context(), sqlDB)
	if err != nil {
		t.Fatal(err)
	}
	defer leases.Close(t.Context())
	leased, err := leases.Acquire(t.Context(), lockkey.Of("leased"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := leased.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	once := func(tx *gorm.DB) error {
		_, err := gormlock.Once(tx, "charge/1", func(*gorm.DB) (int, error) { return 1, nil })
		return err
	}
	for _, err := range []error{
		gormlock.AcquireXactLock(r.holder, []lockkey.Key{key}), once(r.holder),
		r.holder.Exec("SELECT FROM gormlock_fence FOR UPDATE").Error, r.holder.Exec("SELECT FROM gormlock_lease FOR UPDATE").Error,
		r.holder.Exec("UPDATE aorders SET n = 1").Error, r.holder.Exec("UPDATE zorders SET n = 1").Error, r.holder.Exec("INSERT INTO invoices VALUES (1)").Error,
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r.executes("row (0,1) of zorders", "UPDATE zorders SET n = 2")
	r.executes("row (0,1) of aorders", "UPDATE aorders SET n = 2")
	r.executes("a row of invoices", "INSERT INTO invoices VALUES (1)")
	r.executes("a row of invoices", "INSERT INTO notes VALUES (1)", "INSERT INTO invoices VALUES (1)")
	r.waits("row (0,1) of gormlock_fence", func(tx *gorm.DB) error { return gormlock.FenceTx(tx, token) })
	r.executes("row (0,2) of gormlock_lease", "UPDATE gormlock_lease SET owner = 'b'")
	r.waits("a row of gormlock_once", once)
	r.waits("a row of gormlock_once", func(tx *gorm.DB) error {
		if err := tx.Exec("INSERT INTO notes VALUES (2)").Error; err != nil {
			return err
		}
		return once(tx)
	})
	r.waits(key.String(), func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{key}) })

	v := snapshot(t, pgtest.SQLDB(t, pgtest.Schema()), inspect.Known(key))
	got := map[int]string{}
	for _, l := range v.Locks {
		if !l.Granted {
			got[l.PID] = l.Key
		}
	}
	tree := map[int]string{}
	for _, n := range inspect.Tree(v) {
		if n.PID == backend(t, r.holder) {
			for _, w := range n.Waiters {
				tree[w.PID] = w.Wait.Key
			}
			for _, held := range n.Holds {
				if held.Kind == inspect.Transaction && (held.Key != "rows of zorders, aorders, invoices and 3 more tables" || held.Table != "") {
					t.Errorf("held: %q, table %q", held.Key, held.Table)
				}
			}
		}
	}
	for at, want := range r.want {
		if got[at] != want || tree[at] != want {
			t.Errorf("%q, and %q in the tree, want %q: %s", got[at], tree[at], want, v.Session(at).Query)
		}
	}
	r.end()
}

// The next session for a row holds the row's lock against later ones: that lock is shown as on the row, and not on its table.
func TestSnapshot_namesTheRowThatTheNextHolds(t *testing.T) {
	t.Parallel()
	queue := queueBehind(t, "shop", "billing", "stock")
	v := snapshot(t, pgtest.SQLDB(t, pgtest.Schema()))
	held, _ := locksOf(v, queue.queue[0])
	if len(held) != 1 || held[0].Kind != inspect.Tuple || held[0].Key != "row (0,1) of accounts" || held[0].Row != "(0,1)" {
		t.Errorf("%+v", held)
	}
	queue.end(t)
}

// If the server does not say for which row a transaction waits, and the statement could reach several tables, all are named.
func TestSnapshot_namesAllTablesThatAWaitCanBeFor(t *testing.T) {
	t.Parallel()
	r := crowd(t)
	for _, sql := range []string{
		"CREATE FUNCTION noting() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO notes VALUES (NEW.id); RETURN NEW; END $$",
		"CREATE TRIGGER noting BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION noting()",
	} {
		if err := r.db.Exec(sql).Error; err != nil {
			t.Fatal(err)
		}
	}
	if err := r.holder.Exec("INSERT INTO notes VALUES (1)").Error; err != nil {
		t.Fatal(err)
	}
	r.executes("a row of invoices or notes", "INSERT INTO invoices VALUES (1)")
	r.executes("a row of notes", "DO $$ BEGIN INSERT INTO notes VALUES (1); END $$")
	quoting := pgtest.Param("quote_all_identifiers", "on")
	for _, protocol := range [][]pgtest.Option{{pgtest.Schema()}, {pgtest.Schema(), pgtest.SimpleProtocol()}, {pgtest.Schema(), quoting}} {
		v := snapshot(t, pgtest.SQLDB(t, protocol...))
		for _, l := range v.Locks {
			if want, waits := r.want[l.PID]; waits && !l.Granted && l.Key != want {
				t.Errorf("%q, want %q", l.Key, want)
			}
		}
		if !slices.ContainsFunc(v.Locks, func(l inspect.Lock) bool { return l.Granted && l.Key == "a row of notes" }) {
			t.Errorf("the holder's rows are not named in %+v", v.Locks)
		}
	}
	r.end()
}
