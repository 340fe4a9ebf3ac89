package work_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// bound is how long a wait for something that will happen may take on a slow machine.
const bound = 30 * time.Second

// patience is how long eventually waits: longer, because it waits for the whole of a test's work.
const patience = 3 * bound

func TestMain(m *testing.M) {
	if dsn := os.Getenv(tortureDSN); dsn != "" {
		if err := tortured(dsn); err != nil {
			fmt.Fprintln(os.Stderr, "process of a test:", err)
			os.Exit(1)
		}
		return
	}
	pgtest.Main(m)
}

type Mail struct {
	work.Job
	AccountID *int64
	Text      string
}

// Effect is what a handler stores, with the job that it is for.
type Effect struct {
	ID    int64
	JobID int64
	Text  string
}

// open returns a schema of the test's own with the tables.
func open(t testing.TB, opts ...work.Option) *gorm.DB {
	t.Helper()
	db := openWith(t, pgtest.Plugin(gormlock.New()))
	if len(opts) > 0 {
		must(t, work.Migrate(db, &Mail{}, opts...))
	}
	return db
}

func openWith(t testing.TB, with ...pgtest.Option) *gorm.DB {
	t.Helper()
	db := pgtest.Open(t, append(with, pgtest.Schema())...)
	must(t, work.Migrate(db, &Mail{}))
	must(t, db.AutoMigrate(&Effect{}))
	return db
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func enqueue(t testing.TB, db *gorm.DB, texts ...string) []*Mail {
	t.Helper()
	var mails []*Mail
	for _, text := range texts {
		mails = append(mails, &Mail{Text: text})
	}
	must(t, work.Enqueue(db, mails...))
	return mails
}

func worker(t testing.TB, db *gorm.DB, handle func(context.Context, *Mail) error, opts ...work.Option) *work.Worker[Mail] {
	t.Helper()
	w, err := work.New(db, handle, opts...)
	must(t, err)
	return w
}

func drain(t testing.TB, w *work.Worker[Mail]) int {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), bound)
	defer stop()
	n, err := w.Drain(ctx)
	must(t, err)
	return n
}

// start runs w in the background until the end of the test, or until end is called, which returns its error.
func start(t testing.TB, w *work.Worker[Mail]) (end func() error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	end = sync.OnceValue(func() error {
		stop()
		select {
		case err := <-over:
			return err
		case <-time.After(bound):
			return errors.New("Run did not end")
		}
	})
	t.Cleanup(func() { _ = end() })
	return end
}

func reload(t testing.TB, db *gorm.DB, id int64) *Mail {
	t.Helper()
	var m Mail
	must(t, db.First(&m, id).Error)
	return &m
}

// eventually waits until ask says yes.
func eventually(t testing.TB, what string, ask func() bool) {
	t.Helper()
	pause := time.Millisecond
	for deadline := time.Now().Add(patience); !ask(); time.Sleep(pause) { //nolint:forbidigo // between questions
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// texts collects the texts of jobs in the order in which they were worked on.
type texts struct {
	mu  sync.Mutex
	all []string
}

func (l *texts) handle(_ context.Context, m *Mail) error {
	l.add(m.Text)
	return nil
}

func (l *texts) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, text)
}

func (l *texts) mustBe(t testing.TB, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.all, want) {
		t.Errorf("worked on %q, want %q", l.all, want)
	}
}

func states(t testing.TB, db *gorm.DB) map[string]int {
	t.Helper()
	var rows []struct {
		State string
		N     int
	}
	must(t, db.Raw("SELECT state, count(*) AS n FROM mails GROUP BY 1").Scan(&rows).Error)
	found := map[string]int{}
	for _, r := range rows {
		found[r.State] = r.N
	}
	return found
}
