package work_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

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

// A field of the model that has the name or the column of one of Job would be taken for it.
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

// A priority may be any int.
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

// A job that somebody deletes softly while its worker is dead keeps no other job of its value from running.
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
