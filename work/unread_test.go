package work_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// Note is a job. Some of its rows cannot be read.
type Note struct {
	work.Job
	Text string
	Data map[string]any `gorm:"serializer:json"`
	Word Word
}

// Word has its own Scan.
type Word string

func (w *Word) Scan(value any) error {
	text, _ := value.(string)
	switch *w = Word(text); text {
	case "no word":
		return errors.New("no word")
	case "panic":
		panic("no word at all")
	}
	return nil
}

func (w Word) Value() (driver.Value, error) { return string(w), nil }

func (n *Note) AfterFind(*gorm.DB) error {
	switch n.Text {
	case "AfterFind fails":
		return errors.New("not found after all")
	case "AfterFind panics":
		panic("what was found")
	case "AfterFind returns a nil pointer":
		return (*textless)(nil)
	}
	return nil
}

// unreadable are texts of jobs that cannot be read, and a part of the error.
var unreadable = map[string]string{
	"no JSON":                         "unexpected end of JSON input",
	"no word":                         "no word",
	"Scan panics":                     "no word at all",
	"AfterFind fails":                 "not found after all",
	"AfterFind panics":                "what was found",
	"AfterFind returns a nil pointer": "textless panicked",
}

func openNotes(t *testing.T, opts ...work.Option) *gorm.DB {
	t.Helper()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(db, &Note{}, opts...))
	return db
}

func enqueueNotes(t *testing.T, db *gorm.DB, attempts int, texts ...string) {
	t.Helper()
	for _, text := range texts {
		must(t, work.Enqueue(db, &Note{Text: text, Job: work.Job{MaxAttempts: attempts}}))
	}
	must(t, db.Exec("UPDATE notes SET data = '{' WHERE text = 'no JSON'").Error)
	must(t, db.Exec("UPDATE notes SET word = 'no word' WHERE text = 'no word'").Error)
	must(t, db.Exec("UPDATE notes SET word = 'panic' WHERE text = 'Scan panics'").Error)
}

// checkNotes checks that the notes that cannot be read have failed once, and that the others are done.
func checkNotes(t *testing.T, db *gorm.DB, state string) {
	t.Helper()
	var rows []struct {
		Text, State, LastError string
		Attempts               int
	}
	must(t, db.Raw("SELECT text, state, last_error, attempts FROM notes ORDER BY id").Scan(&rows).Error)
	for _, r := range rows {
		want, bad := unreadable[r.Text]
		switch {
		case r.Attempts != 1:
			t.Errorf("%s: %d attempts", r.Text, r.Attempts)
		case bad && (r.State != state || !strings.Contains(r.LastError, want)):
			t.Errorf("%s: %s, %q", r.Text, r.State, r.LastError)
		case !bad && (r.State != "done" || r.LastError != ""):
			t.Errorf("%s: %s, %q", r.Text, r.State, r.LastError)
		}
	}
}

// A job whose row cannot be read fails alone. The jobs that were claimed together with it run.
func TestDrain_aRowThatCannotBeReadFailsAlone(t *testing.T) {
	t.Parallel()
	for text := range unreadable {
		for name, opts := range map[string][]work.Option{"plain": nil, "FairBy": {work.FairBy("text")}, "OnePer": {work.OnePer("text")}, "one worker": {work.Workers(1)}} {
			t.Run(text+", "+name, func(t *testing.T) {
				t.Parallel()
				db := openNotes(t, opts...)
				enqueueNotes(t, db, 1, "a", text, "b")
				var seen texts
				w, err := work.New(db, func(_ context.Context, n *Note) error {
					seen.add(n.Text)
					return nil
				}, opts...)
				must(t, err)
				ctx, stop := context.WithTimeout(t.Context(), bound)
				defer stop()
				if n, err := w.Drain(ctx); n != 3 || err != nil {
					t.Errorf("%d attempts, %v", n, err)
				}
				slices.Sort(seen.all)
				seen.mustBe(t, "a", "b")
				checkNotes(t, db, "dead")
			})
		}
	}
}

// One claim has several such rows, among many others, on a worker that goes on. A handler can still complete and save its job.
func TestRun_severalRowsCannotBeRead(t *testing.T) {
	t.Parallel()
	db := openNotes(t)
	names := []string{"first"}
	for text := range unreadable {
		names = append(names, text, "after "+text, text)
	}
	enqueueNotes(t, db, 20, names...)
	w, err := work.New(db, func(ctx context.Context, n *Note) error {
		n.Word = "saved"
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return errors.Join(tx.Save(n).Error, work.Complete(tx, n)) })
	}, work.Workers(16), work.Backoff(func(int) time.Duration { return time.Hour }))
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	eventually(t, "all are tried", func() bool {
		var left int64
		must(t, db.Raw("SELECT count(*) FROM notes WHERE state IN ('ready', 'running')").Scan(&left).Error)
		return left == 0
	})
	enqueueNotes(t, db, 20, "afterwards")
	eventually(t, "a job afterwards", func() bool {
		var done int64
		must(t, db.Raw("SELECT count(*) FROM notes WHERE text = 'afterwards' AND state = 'done'").Scan(&done).Error)
		return done == 1
	})
	stop()
	must(t, <-over)
	checkNotes(t, db, "later")
	var saved int64
	must(t, db.Raw("SELECT count(*) FROM notes WHERE word = 'saved'").Scan(&saved).Error)
	if saved != int64(len(unreadable))+2 {
		t.Errorf("%d are saved", saved)
	}
}
