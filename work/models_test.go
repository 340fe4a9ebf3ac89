package work_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

type (
	OwnState struct {
		work.Job
		State string
	}
	OwnStateElsewhere struct {
		work.Job
		State string `gorm:"column:us_state"`
	}
	OwnColumn struct {
		work.Job
		Region string `gorm:"column:state"`
	}
	OwnPriority struct {
		work.Job
		Priority string
	}
	ByPointer struct{ *work.Job }
)

// A field of the model with the name or the column of a field of Job would be mistaken for it.
func TestModels_withFieldsLikeJobsAreRefused(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	for name, model := range map[string]any{
		"name": &OwnState{}, "name, another column": &OwnStateElsewhere{}, "column": &OwnColumn{}, "type": &OwnPriority{},
		"a pointer to Job": &ByPointer{}, "a pointer to Job that is set": &ByPointer{&work.Job{}},
	} {
		if err := work.Migrate(db, model); !errors.Is(err, gormlock.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := work.Enqueue(db, &ByPointer{}); !errors.Is(err, gormlock.ErrOption) {
		t.Errorf("Enqueue of a pointer to Job: %v", err)
	}
}

// A priority can be any int.
func TestPriority_ofAnySize(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, work.Enqueue(db, &Mail{Text: "none"}, &Mail{Text: "great", Job: work.Job{Priority: int(time.Now().UnixMilli())}}, &Mail{Text: "low", Job: work.Job{Priority: -1 << 40}}))
	var order []string
	w := worker(t, db, func(_ context.Context, m *Mail) error { order = append(order, m.Text); return nil }, work.Workers(1))
	if drain(t, w); strings.Join(order, " ") != "great none low" {
		t.Errorf("order %v", order)
	}
}

type Trashed struct {
	work.Job
	AccountID int64
	DeletedAt gorm.DeletedAt
}

// If somebody softly deletes a job while its worker is dead, the other jobs of its value can still run.
func TestOnePer_afterASoftDelete(t *testing.T) {
	t.Parallel()
	one := work.OnePer("account_id")
	db := open(t)
	must(t, work.Migrate(db, &Trashed{}, one))
	jobs := []*Trashed{{AccountID: 1}, {AccountID: 1}}
	must(t, work.Enqueue(db, jobs...))
	must(t, db.Exec("UPDATE trasheds SET state = 'running', claimed_by = 'died', attempts = 1, claimed_until = now() - interval '1 minute', deleted_at = now() WHERE id = ?", jobs[0].ID).Error)
	var ran []int64
	w, err := work.New(db, func(_ context.Context, j *Trashed) error { ran = append(ran, j.ID); return nil }, one)
	must(t, err)
	ctx, stop := context.WithTimeout(t.Context(), bound)
	defer stop()
	if _, err := w.Drain(ctx); err != nil || len(ran) != 1 || ran[0] != jobs[1].ID {
		t.Errorf("%v ran: %v", ran, err)
	}
}

type (
	Cyrillic  struct{ work.Job }
	Umlauts   struct{ work.Job }
	Capital   struct{ work.Job }
	Quote     struct{ work.Job }
	Quotes    struct{ work.Job }
	Backslash struct{ work.Job }
	Odd       struct{ work.Job }
)

func (Cyrillic) TableName() string { return strings.Repeat("ж", 30) }
func (Umlauts) TableName() string {
	return "überweisungsaufträge_für_größere_verträge_ä" + strings.Repeat("ö", 12)
}
func (Capital) TableName() string   { return "Mails" }
func (Quote) TableName() string     { return "odd'jobs" }
func (Quotes) TableName() string    { return `odd"jobs` }
func (Backslash) TableName() string { return `tab\tjobs` }
func (Odd) TableName() string       { return "100%jobs" }

// works migrates the table of a model, and works on a job in it.
func works[T any](t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	must(t, work.Migrate(db, new(T)))
	must(t, work.Migrate(db, new(T)))
	must(t, work.Enqueue(db, new(T)))
	w, err := work.New(db, func(context.Context, *T) error { return work.Dead(nil) })
	must(t, err)
	for range 2 {
		if n, err := w.Drain(t.Context()); n != 1 || err != nil {
			t.Errorf("%d jobs: %v", n, err)
		}
		if stats, err := work.Stats(t.Context(), db, new(T)); err != nil || len(stats) != 1 || stats[0].Dead != 1 {
			t.Errorf("%+v: %v", stats, err)
		}
		if n, err := work.Requeue(t.Context(), db, new(T), 1); n != 1 || err != nil {
			t.Errorf("%d jobs again: %v", n, err)
		}
	}
}

// A table may have any name that PostgreSQL and GORM take.
func TestTables_ofAnyName(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"long, of two bytes a letter": works[Cyrillic], "long, of some": works[Umlauts], "capital": works[Capital], "a quote": works[Quote], "quotes": works[Quotes],
		"backslash": works[Backslash], "percent": works[Odd],
	} {
		t.Run(name, test)
	}
}

// Words has columns named like the result columns of gormlock's statements.
type Words struct {
	work.Job
	Free, Fair, Place, Value, Rank, Alone int64
}

// A column can have any name: each value has its turn, and a first job that cannot run holds up only its own value.
func TestOnePerAndFairBy_columnsOfAnyName(t *testing.T) {
	t.Parallel()
	for _, names := range [][2]string{
		{"free", ""}, {"fair", "free"}, {"fair", ""}, {"place", "value"}, {"value", "alone"}, {"alone", "fair"}, {"rank", "rank"},
		{"", "place"}, {"", "value"}, {"", "rank"}, {"", "fair"}, {"", "free"},
	} {
		t.Run(strings.Join(names[:], " "), func(t *testing.T) {
			t.Parallel()
			db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
			opts := []work.Option{work.Workers(1)}
			if names[0] != "" {
				opts = append(opts, work.OnePer(names[0]))
			}
			if names[1] != "" {
				opts = append(opts, work.FairBy(names[1]))
			}
			must(t, work.Migrate(db, &Words{}, opts...))
			with := func(n int64) *Words { return &Words{Free: n, Fair: n, Place: n, Value: n, Rank: n, Alone: n} }
			jobs := []*Words{with(9)}
			jobs[0].RunAt = time.Now().Add(time.Hour)
			for range 30 {
				jobs = append(jobs, with(3))
			}
			jobs = append(jobs, with(1), with(2))
			must(t, work.Enqueue(db, jobs...))
			var order []int64
			w, err := work.New(db, func(_ context.Context, j *Words) error { order = append(order, j.Free); return nil }, opts...)
			must(t, err)
			ctx, stop := context.WithTimeout(t.Context(), bound)
			defer stop()
			if n, err := w.Drain(ctx); err != nil || n != 32 {
				t.Fatalf("%d jobs ran, not 32: %v", n, err)
			}
			if first := order[:3]; slices.Index(first, 1) < 0 || slices.Index(first, 2) < 0 || slices.Index(first, 3) < 0 {
				t.Errorf("the values came in the order %v", order)
			}
		})
	}
}

type LongName struct {
	work.Job
	AccountID int64
}

func (LongName) TableName() string { return "jobs_of_the_department_of_redundancy_dep" }

// The table has an index of OnePer, whatever its name.
func TestNew_withoutTheOnePerOfTheTable(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, work.Migrate(db, &LongName{}, work.OnePer("account_id")))
	handle := func(context.Context, *LongName) error { return nil }
	if _, err := work.New(db, handle); !errors.Is(err, gormlock.ErrOption) || !strings.Contains(err.Error(), "name its OnePer") {
		t.Error(err)
	}
	_, err := work.New(db, handle, work.OnePer("account_id"))
	must(t, err)
}

// A table can have a name that the statements of workers use internally.
func TestModels_withTablesOfAnyName(t *testing.T) {
	t.Parallel()
	options := map[string][]work.Option{"": nil, "one": {work.OnePer("Free")}, "fair": {work.FairBy("Fair")}, "both": {work.OnePer("Free"), work.FairBy("Fair")}}
	for _, name := range []string{"v", "w", "o", "q", "p", "l", "n", "k", "t", "j", "mine", "free"} {
		for kind, opts := range options {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
				db.NamingStrategy = schema.NamingStrategy{SingularTable: true, NameReplacer: strings.NewReplacer("Words", name)}
				opts := append([]work.Option{work.Workers(2)}, opts...)
				must(t, work.Migrate(db, &Words{}, opts...))
				jobs := []*Words{{Job: work.Job{RunAt: time.Now().Add(time.Hour)}, Free: 9}}
				for i := range 30 {
					jobs = append(jobs, &Words{Free: int64(i % 4), Fair: int64(i % 3)})
				}
				must(t, work.Enqueue(db, jobs...))
				var seen sync.Map
				w, err := work.New(db, func(_ context.Context, j *Words) error {
					if _, again := seen.LoadOrStore(j.ID, true); !again && j.Free == 3 {
						return work.Later(time.Millisecond, nil)
					}
					return nil
				}, opts...)
				must(t, err)
				ctx, stop := context.WithTimeout(t.Context(), bound)
				defer stop()
				done := int64(0)
				for done < 30 && ctx.Err() == nil {
					if _, err := w.Drain(ctx); err != nil {
						t.Fatal(err)
					}
					must(t, db.Model(&Words{}).Where("state = 'done'").Count(&done).Error)
				}
				if done != 30 {
					t.Errorf("%d jobs are done, not 30", done)
				}
			})
		}
	}
}
