package events_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// hearer is told what happens.
type hearer struct{ pgtest.Hearer }

// heard is what was told since it was last asked: times, which differ, only as far as they are there.
func (h *hearer) heard() string {
	events := h.Take()
	lines := make([]string, len(events))
	for i, e := range events {
		line := e.Kind.String() + fmt.Sprintf(" key=%s table=%s mode=%s rows=%d", e.Key, e.Table, e.Mode, e.Rows)
		if e.Source != "gormlock" {
			line += " of " + e.Source
		}
		if e.Wait > 0 {
			line += " waited"
		}
		if e.Held > 0 {
			line += " held"
		}
		if e.Err != nil {
			line += " failed"
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// expect waits for what is still under way: an observer has 10 ms before a statement goes on without it.
func (h *hearer) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); len(h.Kinds()) < len(want) && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if got := h.heard(); got != strings.Join(want, "\n") {
		t.Errorf("%s: heard\n%s\nwant\n%s", what, got, strings.Join(want, "\n"))
	}
}

type observed struct {
	ID      int64
	State   string
	Version int64 `gormlock:"version"`
}

func TestObserver(t *testing.T) {
	t.Parallel()
	h := &hearer{}
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(gormlock.WithObserver(h))))
	stand.Must(t, db.AutoMigrate(&observed{}))
	a := observed{State: "ready"}
	stand.Must(t, db.Create(&a).Error)
	h.expect(t, "a statement that uses nothing")
	key := pgtest.Key(t)
	acquired, over := fmt.Sprintf("acquired key=%s table= mode=exclusive rows=0 waited", key), fmt.Sprintf("released key=%s table= mode=exclusive rows=0 held", key)

	t.Run("an advisory lock of a statement", func(t *testing.T) {
		stand.Must(t, db.Scopes(gormlock.WithXactLock(key)).Create(&observed{}).Error)
		h.expect(t, "create", acquired, over)
	})
	t.Run("of a transaction", func(t *testing.T) {
		err := gormlock.Transaction(db, func(*gorm.DB) error { h.expect(t, "inside", acquired); return nil }, gormlock.Locking(key))
		stand.Must(t, err)
		h.expect(t, "after", over)
	})
	t.Run("of a savepoint that is rolled back", func(t *testing.T) {
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			_ = tx.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, gormlock.AcquireXactLock(tx, []lockkey.Key{key}, gormlock.Shared()))
				return errors.New("back")
			})
			h.expect(t, "after the savepoint", strings.ReplaceAll(acquired, "exclusive", "shared"), strings.ReplaceAll(over, "exclusive", "shared"))
			return nil
		}))
	})
	t.Run("that is held by somebody else", func(t *testing.T) {
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, gormlock.AcquireXactLock(tx, []lockkey.Key{key}))
			h.expect(t, "mine", acquired)
			_ = db.Scopes(gormlock.WithXactLock(key, gormlock.Try())).Create(&observed{})
			h.expect(t, "try", fmt.Sprintf("not acquired key=%s table= mode= rows=0 waited failed", key))
			_ = gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(key, gormlock.Timeout(time.Millisecond)))
			h.expect(t, "timeout", fmt.Sprintf("timed out key=%s table= mode= rows=0 waited failed", key))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_ = gormlock.Transaction(db.WithContext(ctx), func(*gorm.DB) error { return nil }, gormlock.Locking(key))
			h.expect(t, "a ctx that ends", fmt.Sprintf("timed out key=%s table= mode= rows=0 waited failed", key))
			return nil
		}))
		h.expect(t, "after", over)
	})
	t.Run("rows", func(t *testing.T) {
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			b := a
			stand.Must(t, gormlock.LockRow(tx, &b))
			h.expect(t, "lock", "acquired key= table=observeds mode=for update rows=1 waited")
			stand.Must(t, db.Transaction(func(other *gorm.DB) error {
				_ = gormlock.LockRow(other, &b, gormlock.Try())
				h.expect(t, "try", "not acquired key= table=observeds mode=for update rows=0 waited failed")
				_ = other.Scopes(gormlock.WithRowLock(gormlock.ForShare, gormlock.Timeout(time.Millisecond))).Find(&[]observed{})
				h.expect(t, "timeout", "timed out key= table=observeds mode=for share rows=0 waited failed")
				stand.Must(t, other.Scopes(gormlock.WithSkipLocked()).Where("id = ?", a.ID).Find(&[]observed{}).Error)
				h.expect(t, "skip", "acquired key= table=observeds mode=for update rows=0 waited")
				return nil
			}))
			return nil
		}))
	})
	t.Run("a claim", func(t *testing.T) {
		for rows := range 2 {
			_, err := gormlock.Claim[observed](db, 5, map[string]any{"state": "done"}, func(q *gorm.DB) *gorm.DB { return q.Where("state = 'ready'") })
			stand.Must(t, err)
			h.expect(t, "claim", fmt.Sprintf("claimed key= table=observeds mode= rows=%d waited", 1-rows))
		}
	})
	t.Run("stale writes", func(t *testing.T) {
		stale := fmt.Sprintf("stale key=observeds id=%d table=observeds mode=%%s rows=0 failed", a.ID)
		_ = db.Save(&a)
		h.expect(t, "save", fmt.Sprintf(stale, "save"))
		_ = db.Delete(&[]observed{a})
		h.expect(t, "delete", fmt.Sprintf(stale, "delete"))
		_ = db.Transaction(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, &a) })
		h.expect(t, "verify", "acquired key= table=observeds mode=for share rows=1 waited", fmt.Sprintf(stale, "verify"))
		runs := 0
		_ = gormlock.Transaction(db, func(tx *gorm.DB) error {
			if runs++; runs == 1 {
				return tx.Model(&a).Update("state", "x").Error
			}
			return nil
		}, gormlock.Attempts(2))
		h.expect(t, "retry", fmt.Sprintf(stale, "update"), "retried key= table= mode= rows=0 failed")
	})
}

type bulletin struct {
	ID    int64
	Body  string
	Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
}

// TestObserverOfFences: a write that a later token refuses is told of, whoever refuses it.
func TestObserverOfFences(t *testing.T) {
	t.Parallel()
	h := &hearer{}
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(gormlock.WithObserver(h))))
	stand.Must(t, db.AutoMigrate(&bulletin{}))
	stand.MigrateFence(t, db)
	old := stand.Issue(t, db, "report", 1)
	r := bulletin{Body: "a"}
	stand.Must(t, stand.With(db, old).Create(&r).Error)
	_ = stand.Issue(t, db, "report", 1)
	for what, write := range map[string]func() error{
		"create":  func() error { return stand.With(db, old).Create(&bulletin{}).Error },
		"update":  func() error { return stand.With(db, old).Model(&r).Update("body", "b").Error },
		"bulk":    func() error { return stand.With(db, old).Model(&bulletin{}).Where("id > 0").Update("body", "b").Error },
		"delete":  func() error { return stand.With(db, old).Delete(&r).Error },
		"FenceTx": func() error { return db.Transaction(func(tx *gorm.DB) error { return gormlock.FenceTx(tx, old) }) },
	} {
		if err := write(); !errors.Is(err, gormlock.ErrFenced) {
			t.Errorf("%s: %v", what, err)
		}
		if got := h.heard(); strings.Count(got, "\n") != 0 || !strings.HasPrefix(got, "fenced key=report/1 ") || !strings.HasSuffix(got, "failed") {
			t.Errorf("%s: heard\n%s", what, got)
		}
	}
}

// TestObserverThatPanics: nobody's statement fails by it.
func TestObserverThatPanics(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(gormlock.WithObserver(panics{}))))
	stand.Must(t, db.AutoMigrate(&observed{}))
	stand.Must(t, db.Scopes(gormlock.WithXactLock(pgtest.Key(t))).Create(&observed{}).Error)
}

type panics struct{}

func (panics) Observe(context.Context, observe.Event) { panic("of the observer") }
