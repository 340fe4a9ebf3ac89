package merges_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// page is a row that people edit.
type page struct {
	ID        int64
	Title     string
	Body      *string
	Visits    int64   `gormlock:"unversioned"`
	Extra     *string `gorm:"type:jsonb"`
	UpdatedAt time.Time
	DeletedAt gorm.DeletedAt
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`

	Seen string `gorm:"-"` // what a hook saw
}

func (p *page) BeforeSave(*gorm.DB) error {
	p.Seen = p.Title
	return failIf(p.Title == "fail before")
}

func (p *page) AfterSave(*gorm.DB) error { return failIf(p.Title == "fail after") }

var errHook = errors.New("the hook fails")

// failIf is the error of a hook that fails.
func failIf(fails bool) error {
	if fails {
		return errHook
	}
	return nil
}

// plainPage is a page without a version.
type plainPage struct {
	ID    int64
	Title string
	Body  string
	At    time.Time
}

func text(s string) *string { return &s }

// opened is a page as a form has it: base, and mine to change.
func opened(t *testing.T, db *gorm.DB) (base, mine page) {
	t.Helper()
	base = page{Title: "title", Body: text("body")}
	stand.Must(t, db.Create(&base).Error)
	base = page{ID: base.ID}
	stand.Must(t, db.First(&base).Error)
	return base, base
}

// mustConflict are the conflicts, by column.
func mustConflict(t *testing.T, err error) map[string]gormlock.ColumnConflict {
	t.Helper()
	var conflict *gormlock.ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, gormlock.ErrStale) || gormlock.IsRetryable(err) {
		t.Fatalf("want a conflict, got %v", err)
	}
	columns := map[string]gormlock.ColumnConflict{}
	for _, c := range conflict.Columns {
		columns[c.Column] = c
		if !strings.Contains(err.Error(), c.Column) {
			t.Errorf("%q does not name %s", err, c.Column)
		}
	}
	return columns
}

// mustBeRow fails the test unless the struct is its row.
func mustBeRow(t *testing.T, db *gorm.DB, mine page) {
	t.Helper()
	row := stand.Row[page](t, db, mine.ID)
	mine.Seen = ""
	if !reflect.DeepEqual(mine, row) {
		t.Errorf("mine is %+v, the row %+v", mine, row)
	}
}

func TestSaveMerged(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&page{}}, func(t *testing.T, db *gorm.DB) {
		base, mine := opened(t, db)
		theirs := base
		stand.Must(t, db.Model(&theirs).Updates(map[string]any{"title": "theirs", "visits": 7}).Error)
		mine.Body = nil
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		stand.Equal(t, "title", mine.Title, "theirs")
		stand.Equal(t, "body", mine.Body, nil)
		stand.Equal(t, "what the hook saw", mine.Seen, "theirs")
		stand.Equal(t, "version", mine.Version, 3)
		mustBeRow(t, db, mine)

		// Both to the same, and update times: no conflict.
		base, mine = opened(t, db)
		theirs = base
		stand.Must(t, db.Model(&theirs).Updates(map[string]any{"title": "same", "body": "theirs"}).Error)
		mine.Title, mine.Visits, mine.UpdatedAt = "same", 3, mine.UpdatedAt.Add(time.Hour)
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		stand.Equal(t, "body", *mine.Body, "theirs")
		stand.Equal(t, "visits", mine.Visits, 3)
		mustBeRow(t, db, mine)

		// The next save of mine is an ordinary one.
		mine.Title = "later"
		stand.Must(t, db.Save(&mine).Error)

		// Both, differently.
		base, mine = opened(t, db)
		theirs = base
		stand.Must(t, db.Model(&theirs).Updates(map[string]any{"title": "theirs", "body": nil}).Error)
		mine.Title, mine.Body, mine.Visits = "mine", text("mine"), 9
		was := mine
		conflicts := mustConflict(t, gormlock.SaveMerged(db, &mine, &base))
		if len(conflicts) != 2 || !reflect.DeepEqual(mine, was) {
			t.Errorf("%+v, mine is %+v", conflicts, mine)
		}
		stand.Equal[any](t, "title", conflicts["title"], gormlock.ColumnConflict{Column: "title", Base: "title", Mine: "mine", Theirs: "theirs"})
		stand.Equal(t, "body of theirs", conflicts["body"].Theirs.(*string), nil)
		stand.Equal(t, "row", stand.Row[page](t, db, base.ID).Visits, 0)

		// Nothing is mine: nothing is written, and mine becomes the row.
		mine = base
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		stand.Equal(t, "version", mine.Version, 2)
		stand.Equal(t, "what a hook saw", mine.Seen, "")
		mustBeRow(t, db, mine)
	})
}

func TestSaveMerged_ofARowThatIsGone(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&page{}, &plainPage{}}, func(t *testing.T, db *gorm.DB) {
		base, mine := opened(t, db)
		mine.Title = "mine"
		was := mine
		theirs := base
		stand.Must(t, db.Delete(&theirs).Error)
		e := stand.MustBeStale(t, gormlock.SaveMerged(db, &mine, &base))
		if !e.Deleted || e.Table != "pages" || e.Op != "save" || !strings.Contains(e.Error(), "soft-deleted") {
			t.Errorf("%+v: %v", e, e)
		}
		stand.Must(t, gormlock.SaveMerged(db.Unscoped(), &mine, &base))
		mustBeRow(t, db, mine)
		theirs = mine
		mine = was
		stand.Must(t, db.Unscoped().Delete(&theirs).Error)
		stand.Equal(t, "deleted", stand.MustBeStale(t, gormlock.SaveMerged(db.Unscoped(), &mine, &base)).Deleted, true)
		if !reflect.DeepEqual(mine, was) {
			t.Errorf("mine is %+v", mine)
		}
		plain, other := plainPage{ID: 7, Title: "x"}, plainPage{ID: 7, Title: "y"}
		stand.Equal(t, "deleted", stand.MustBeStale(t, gormlock.SaveMerged(db, &other, &plain)).Deleted, true)

		base, mine = opened(t, db)
		mine.Title = "mine"
		if err := gormlock.SaveMerged(db.Where("title = ?", "other"), &mine, &base); !errors.Is(err, gorm.ErrRecordNotFound) || errors.Is(err, gormlock.ErrStale) {
			t.Errorf("conditions that leave it out: %v", err)
		}
		stand.Must(t, gormlock.SaveMerged(db.Where("title = ?", "title"), &mine, &base))
		mustBeRow(t, db, mine)
	})
}

func TestSaveMerged_withoutVersion(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, []any{&plainPage{}}, func(t *testing.T, db *gorm.DB) {
		base := plainPage{Title: "a", Body: "b", At: time.Now()} // nanoseconds, which the column does not hold
		stand.Must(t, db.Create(&base).Error)
		stand.Must(t, db.Model(&plainPage{ID: base.ID}).Update("title", "theirs").Error)
		mine := base
		mine.Body = "mine"
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		stand.Equal(t, "title", mine.Title, "theirs")
		row := stand.Row[plainPage](t, db, base.ID)
		if row.Title != "theirs" || row.Body != "mine" || !mine.At.Equal(row.At) {
			t.Errorf("mine %+v, row %+v", mine, row)
		}
		again := base
		again.Title = "again"
		mustConflict(t, gormlock.SaveMerged(db, &again, &base))
	})
}

// It waits for a row that somebody has locked, and merges with what the row is then.
func TestSaveMerged_waits(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&page{}})
	base, mine := opened(t, db)
	rival := db.Begin()
	theirs := base
	stand.Must(t, rival.Model(&theirs).Update("title", "theirs").Error)
	done := make(chan error, 1)
	pids := make(chan int, 1)
	mine.Body = text("mine")
	go func() {
		done <- db.Transaction(func(tx *gorm.DB) error {
			var pid int
			if err := tx.Raw("SELECT pg_backend_pid()").Scan(&pid).Error; err != nil {
				return err
			}
			pids <- pid
			return gormlock.SaveMerged(tx, &mine, &base)
		})
	}()
	pgtest.WaitBackendBlocked(t, <-pids)
	stand.Must(t, rival.Commit().Error)
	stand.Must(t, <-done)
	stand.Equal(t, "title", mine.Title, "theirs")
	mustBeRow(t, db, mine)
}
