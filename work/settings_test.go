package work_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

type Measured struct {
	work.Job
	Value float64 `gorm:"type:float8"`
	Data  []byte
	At    time.Time
}

// A handler gets what was stored, whatever text formats the server is set to.
func TestJobs_areReadWithAnySettings(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"extra_float_digits": "0", "DateStyle": "German", "bytea_output": "escape", "IntervalStyle": "sql_standard"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema(), pgtest.Param(name, value))
			must(t, work.Migrate(db, &Measured{}))
			third := 1.0
			third /= 3
			job := Measured{Value: third, Data: []byte("a\\\x00b"), At: time.Now().Round(time.Microsecond)}
			must(t, work.Enqueue(db, &job))
			done := 0
			w, err := work.New(db, func(_ context.Context, j *Measured) error {
				if done++; j.Value != job.Value || !bytes.Equal(j.Data, job.Data) || !j.At.Equal(job.At) {
					t.Errorf("%+v, stored %+v", j, job)
				}
				return nil
			})
			must(t, err)
			_, err = w.Drain(t.Context())
			must(t, err)
			if done != 1 {
				t.Errorf("%d jobs were done", done)
			}
		})
	}
}

// Results of gormlock's own queries are read by the names in the queries, whatever the program's naming strategy.
func TestOwnQueries_withAnyNamingStrategy(t *testing.T) {
	t.Parallel()
	names := schema.NamingStrategy{NoLowerCase: true}
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema(), pgtest.Config(func(c *gorm.Config) { c.NamingStrategy = names }))
	type Document struct {
		ID      int64
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	must(t, gormlock.AutoMigrate(db, &Document{}))
	must(t, gormlock.MigrateAll(db))
	must(t, gormlock.Check(db, &Document{}))
	must(t, work.Migrate(db, &Mail{}))
	must(t, work.Enqueue(db, &Mail{Text: "a"}, &Mail{Text: "b"}))
	counts := func(ready, dead int64) {
		t.Helper()
		stats, err := work.Stats(t.Context(), db, &Mail{})
		must(t, err)
		if len(stats) != 1 || stats[0].Queue != "default" || stats[0].Ready != ready || stats[0].Dead != dead {
			t.Errorf("%+v", stats)
		}
	}
	counts(2, 0)
	w, err := work.New(db, func(context.Context, *Mail) error { return work.Dead(errors.New("no")) })
	must(t, err)
	_, err = w.Drain(t.Context())
	must(t, err)
	counts(0, 2)
	n, err := work.Requeue(t.Context(), db, &Mail{}, 1)
	must(t, err)
	if n != 1 {
		t.Errorf("%d were requeued", n)
	}
	counts(1, 1)
}
