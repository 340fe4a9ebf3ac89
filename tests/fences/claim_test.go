package fences_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type fencedTask struct {
	ID      int64
	State   string
	Version int64  `gormlock:"version"`
	Fence   *int64 `gormlock:"fence,key=queue"`
}

type fencedPair struct {
	A     int64 `gorm:"primaryKey;autoIncrement:false"`
	B     int64 `gorm:"primaryKey;autoIncrement:false"`
	State string
	Fence int64 `gormlock:"fence,key=queue"`
}

func readyFirst(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready").Order("id") }

// A claim takes its token from the context or from Fence, and a superseded claimer gets no row and is told.
func TestFencedClaim(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		fencedClaim(t, stand.Fenced(t, []any{&fencedTask{}, &fencedPair{}}, opts...))
	})
}

func fencedClaim(t *testing.T, db *gorm.DB) {
	token := stand.Issue(t, db, "queue", 1)
	stand.Must(t, stand.With(db, token).Create(&[]fencedTask{{State: "ready"}, {State: "ready"}, {State: "ready"}, {State: "ready"}}).Error)
	run := map[string]any{"state": "running"}

	got, err := gormlock.Claim[fencedTask](stand.With(db, token), 1, run, readyFirst)
	stand.Must(t, err)
	stand.Equal(t, "claimed", len(got), 1)
	stand.Equal(t, "fence", number(got[0].Fence), token.Number)
	stand.Equal(t, "version", got[0].Version, 2)
	stand.Equal(t, "stored", number(stand.Row[fencedTask](t, db, 1).Fence), token.Number)
	got, err = gormlock.Claim[fencedTask](db.Clauses(gormlock.Fence(token)), 1, run, readyFirst)
	stand.Must(t, err)
	stand.Equal(t, "by a clause", got[0].ID, 2)
	stand.Must(t, db.Exec("UPDATE fenced_tasks SET fence = NULL WHERE id = 3").Error)

	for name, tx := range map[string]*gorm.DB{"no token": db, "wrong key": stand.With(db, stand.Issue(t, db, "invoice", 1))} {
		_, err = gormlock.Claim[fencedTask](tx, 1, run, readyFirst)
		mustMissToken(t, err, `"queue"`)
		if _, err := gormlock.Claim[fencedTask](tx.Session(&gorm.Session{DryRun: true}), 1, run, readyFirst); !errors.Is(err, gormlock.ErrFenceMissing) {
			t.Error(name, err)
		}
	}
	if _, err = gormlock.Claim[fencedTask](stand.With(db, token), 1, map[string]any{"state": "x", "Fence": 7}, readyFirst); err == nil || !strings.Contains(err.Error(), "is the fence") {
		t.Error(err)
	}
	got, err = gormlock.Claim[fencedTask](db.Clauses(gormlock.IgnoreFence()), 1, run, readyFirst)
	stand.Must(t, err)
	stand.Equal(t, "ignored", got[0].ID, 3)
	stand.Equal(t, "kept", got[0].Fence == nil, true)
	if _, err = gormlock.Claim[fencedTask](db.Clauses(gormlock.ExpectVersion(1)), 1, run, readyFirst); err == nil {
		t.Error("a version cannot be expected of rows that are not known")
	}

	// L1: a later token is issued.
	later := stand.Issue(t, db, "queue", 1)
	_, err = gormlock.Claim[fencedTask](stand.With(db, token), 1, run, readyFirst)
	e := mustBeFenced(t, err)
	stand.Equal(t, "latest", e.Latest, later)
	stand.Equal(t, "op", e.Op, "claim")
	stand.Equal(t, "table", e.Table, "fenced_tasks")
	stand.Equal(t, "free", stand.Row[fencedTask](t, db, 4).State, "ready")
	// V5: a refusal that is swallowed is the error of the commit.
	mustFenced(t, db.Transaction(func(tx *gorm.DB) error {
		_, err := gormlock.Claim[fencedTask](tx.Clauses(gormlock.Fence(token)), 1, run, readyFirst)
		mustFenced(t, err)
		return nil
	}))
	// A row that was written with a later token of another key is not taken, and not passed over in silence.
	stand.Must(t, db.Exec("UPDATE fenced_tasks SET fence = ? WHERE id = 4", later.Number+5).Error)
	_, err = gormlock.Claim[fencedTask](stand.With(db, later), 1, run, readyFirst)
	stand.Equal(t, "written", mustBeFenced(t, err).Latest, fence.Token{Number: later.Number + 5})
	// Nothing is free: who is superseded changes nothing, and hears nothing.
	stand.Must(t, db.Exec("UPDATE fenced_tasks SET state = 'running'").Error)
	got, err = gormlock.Claim[fencedTask](stand.With(db, token), 1, run, readyFirst)
	stand.Must(t, err)
	stand.Equal(t, "none", len(got), 0)

	stand.Must(t, stand.With(db, later).Create(&fencedPair{A: 1, B: 2, State: "ready"}).Error)
	ready := func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready") }
	_, err = gormlock.Claim[fencedPair](stand.With(db, token), 1, run, ready)
	mustFenced(t, err)
	pairs, err := gormlock.Claim[fencedPair](stand.With(db, later), 1, run, ready)
	stand.Must(t, err)
	stand.Equal(t, "pair", pairs[0], fencedPair{1, 2, "running", later.Number})
}
