package work_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// Parcel is a job that exists once for each code.
type Parcel struct {
	work.Job
	Code string `gorm:"uniqueIndex"`
	Text string
}

// Enqueue with an upsert does not change the columns that workers maintain: the existing job may run.
func TestEnqueue_upsert(t *testing.T) {
	t.Parallel()
	on := func(c clause.OnConflict) clause.OnConflict {
		c.Columns = []clause.Column{{Name: "code"}}
		return c
	}
	assign := func(columns ...string) clause.OnConflict {
		return on(clause.OnConflict{DoUpdates: clause.AssignmentColumns(columns)})
	}
	for name, try := range map[string]struct {
		conflict clause.OnConflict
		refused  bool
		text     string
	}{
		"all columns":       {on(clause.OnConflict{UpdateAll: true}), true, "one"},
		"the state":         {assign("text", "state"), true, "one"},
		"the state, set":    {on(clause.OnConflict{DoUpdates: clause.Assignments(map[string]any{"state": "ready"})}), true, "one"},
		"attempts":          {assign("attempts"), true, "one"},
		"who has it":        {assign("claimed_by"), true, "one"},
		"until when":        {assign("claimed_until"), true, "one"},
		"the error":         {assign("last_error"), true, "one"},
		"nothing":           {on(clause.OnConflict{DoNothing: true}), false, "one"},
		"columns of my own": {assign("text", "priority"), false, "two"},
	} {
		for way, give := range map[string]func(*gorm.DB) *gorm.DB{
			"Clauses": func(db *gorm.DB) *gorm.DB { return db.Clauses(try.conflict) },
			"Scopes": func(db *gorm.DB) *gorm.DB {
				return db.Scopes(func(q *gorm.DB) *gorm.DB { return q.Clauses(try.conflict) })
			},
		} {
			t.Run(name+" by "+way, func(t *testing.T) {
				t.Parallel()
				db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
				must(t, work.Migrate(db, &Parcel{}))
				must(t, work.Enqueue(db, &Parcel{Code: "ann", Text: "one"}))
				attempts := 0
				w, err := work.New(db, func(context.Context, *Parcel) error {
					if attempts++; attempts > 1 {
						return nil
					}
					if err := work.Enqueue(give(db), &Parcel{Code: "ann", Text: "two"}); errors.Is(err, gormlock.ErrOption) != try.refused || err != nil && !try.refused {
						t.Errorf("%v", err)
					}
					var now Parcel
					must(t, db.First(&now).Error)
					if now.State != "running" || now.Text != try.text || now.ClaimedUntil == nil || now.Attempts != 1 {
						t.Errorf("%+v", now)
					}
					return nil
				})
				must(t, err)
				n, err := w.Drain(t.Context())
				if must(t, err); n != 1 {
					t.Errorf("%d attempts", n)
				}
			})
		}
	}
}
