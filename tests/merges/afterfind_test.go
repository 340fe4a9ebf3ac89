package merges_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// tagged keeps a column in another form, in a field that is no column.
type tagged struct {
	ID      int64
	Title   string
	TagsRaw string
	Tags    []string `gorm:"-"`
	Shown   bool     `gorm:"-"` // no hook knows it
	Version int64    `gormlock:"version"`
}

func (p *tagged) AfterFind(*gorm.DB) error  { p.Tags = strings.Split(p.TagsRaw, ","); return nil }
func (p *tagged) BeforeSave(*gorm.DB) error { p.TagsRaw = strings.Join(p.Tags, ","); return nil }

// hookedTagged has a hook after the write too.
type hookedTagged tagged

func (*hookedTagged) TableName() string { return "taggeds" }

func (p *hookedTagged) AfterFind(db *gorm.DB) error { return (*tagged)(p).AfterFind(db) }

func (*hookedTagged) AfterSave(*gorm.DB) error { return nil }

// writtenTagged has the hook after the write, and none after a read.
type writtenTagged tagged

func (*writtenTagged) TableName() string { return "taggeds" }

func (*writtenTagged) AfterSave(*gorm.DB) error { return nil }

func overtaken(t *testing.T, db *gorm.DB) tagged {
	t.Helper()
	p := stand.Made(t, db, tagged{Title: "t", Tags: []string{"a"}})
	var r tagged
	stand.Must(t, db.First(&r, p.ID).Error)
	r.Shown = true
	stand.Must(t, db.Exec("UPDATE taggeds SET tags_raw='rival', version=2 WHERE id=?", p.ID).Error)
	return r
}

// A struct that becomes a row of others is completed by AfterFind, or a hook before the next write makes old columns of it.
func TestV25_AfterFindOfAnAdoptedRow(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&tagged{}}, afterFindOfAnAdoptedRow)
}

func afterFindOfAnAdoptedRow(t *testing.T, db *gorm.DB) {
	type form struct {
		Title   string
		Version int64
	}
	onID := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"title"})}
	for name, write := range map[string]func(p *tagged) error{
		"form": func(p *tagged) error { return db.Model(p).Updates(form{"mine", 2}).Error },
		"map":  func(p *tagged) error { return db.Model(p).Updates(map[string]any{"title": "mine", "version": 2}).Error },
		"ExpectVersion": func(p *tagged) error {
			return db.Clauses(gormlock.ExpectVersion(2)).Model(p).Update("title", "mine").Error
		},
		"upsert": func(p *tagged) error {
			*p = tagged{ID: p.ID, Title: "mine", Shown: true}
			return db.Clauses(onID).Create(p).Error
		},
		"upserts": func(p *tagged) error {
			*p = tagged{ID: p.ID, Title: "mine", Shown: true}
			return db.Clauses(onID).Create([]*tagged{p}).Error
		},
		"SaveMerged": func(p *tagged) error {
			base := *p
			p.Title = "mine"
			return gormlock.SaveMerged(db, p, &base)
		},
	} {
		p := overtaken(t, db)
		stand.Must(t, write(&p))
		p.Title = "again"
		stand.Must(t, db.Save(&p).Error)
		stored := stand.Row[tagged](t, db, p.ID)
		stand.Equal(t, name, stored.TagsRaw, "rival")
		stand.Equal(t, name, stored.Title, "again")
		stand.Equal(t, name+" keeps what no hook knows", p.Shown, true)
	}

	o := hookedTagged(overtaken(t, db))
	stand.Must(t, db.Model(&o).Updates(form{"mine", 2}).Error)
	stand.MustBeUnread(t, db.Save(&o).Error)
	stand.Equal(t, "stored", stand.Row[tagged](t, db, o.ID).TagsRaw, "rival")

	w := writtenTagged(overtaken(t, db))
	stand.Must(t, db.Clauses(clause.Returning{}).Model(&w).Updates(form{"mine", 2}).Error)
	stand.Must(t, db.Save(&w).Error)
	stand.Equal(t, "saved", stand.Row[tagged](t, db, w.ID).TagsRaw, "rival")
}

// What both sides changed in a field that is no column is a conflict, what one side changed is kept. A rollback undoes it.
func TestMerged_fieldsThatAreNoColumns(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&tagged{}})
	p := overtaken(t, db)
	mine := p
	mine.Tags = []string{"mine"}
	var conflict *gormlock.ConflictError
	if err := gormlock.SaveMerged(db, &mine, &p); !errors.As(err, &conflict) || conflict.Columns[0].Column != "Tags" {
		t.Fatal(err)
	}
	stand.Equal(t, "mine", mine.Tags[0], "mine")
	mine = p
	mine.Title = "mine"
	wrong := errors.New("wrong")
	if err := db.Transaction(func(tx *gorm.DB) error {
		stand.Must(t, gormlock.SaveMerged(tx, &mine, &p))
		stand.Equal(t, "merged", mine.Tags[0], "rival")
		return wrong
	}); !errors.Is(err, wrong) {
		t.Fatal(err)
	}
	stand.Equal(t, "put back", mine.Tags[0], "a")

	var now tagged
	stand.Must(t, db.First(&now, p.ID).Error)
	mine = now
	mine.Tags = []string{"only mine"}
	stand.Must(t, db.Exec("UPDATE taggeds SET title='rival', version=3 WHERE id=?", p.ID).Error)
	mine.TagsRaw = "only mine" // which says that there is something to write
	stand.Must(t, gormlock.SaveMerged(db, &mine, &now))
	stored := stand.Row[tagged](t, db, p.ID)
	stand.Equal(t, "stored", stored.TagsRaw+"/"+stored.Title, "only mine/rival")
}

// Where hooks are skipped, AfterFind does not complete a struct that becomes a row of others: its next write is refused.
func TestV25_AdoptedRowWithoutHooks(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&tagged{}}, func(t *testing.T, db *gorm.DB) {
		expects := db.Clauses(gormlock.ExpectVersion(2)).Session(&gorm.Session{})
		for name, write := range map[string]func(p *tagged) error{
			"UpdateColumn":  func(p *tagged) error { return expects.Model(p).UpdateColumn("title", "mine").Error },
			"UpdateColumns": func(p *tagged) error { return expects.Model(p).UpdateColumns(map[string]any{"title": "mine"}).Error },
			"SkipHooks": func(p *tagged) error {
				return expects.Session(&gorm.Session{SkipHooks: true}).Model(p).Update("title", "mine").Error
			},
			"upsert": func(p *tagged) error {
				onID := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"title"})}
				*p = tagged{ID: p.ID, Title: "mine", Tags: []string{"old"}}
				return db.Session(&gorm.Session{SkipHooks: true}).Clauses(onID).Create(p).Error
			},
		} {
			p := overtaken(t, db)
			stand.Must(t, write(&p))
			if err := db.Save(&p).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("%s, and Save: %v", name, err)
			}
			stand.Equal(t, name+": the row", stand.Row[tagged](t, db, p.ID).TagsRaw, "rival")
		}
	})
}

// An upsert of all columns makes the row what the struct is: it can be written next, without hooks too.
func TestV25_UpsertOfAllColumnsWithoutHooks(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&tagged{}}, func(t *testing.T, db *gorm.DB) {
		p := overtaken(t, db)
		mine := tagged{ID: p.ID, Title: "mine", TagsRaw: "b", Tags: []string{"b"}}
		stand.Must(t, db.Session(&gorm.Session{SkipHooks: true}).Clauses(clause.OnConflict{UpdateAll: true}).Create(&mine).Error)
		mine.Title = "again"
		stand.Must(t, db.Save(&mine).Error)
		stand.Equal(t, "the row", stand.Row[tagged](t, db, p.ID).TagsRaw, "b")
	})
}

// timedTagged has a version that does not count up by one.
type timedTagged struct {
	ID      int64
	Title   string
	TagsRaw string
	Tags    []string  `gorm:"-"`
	Version time.Time `gormlock:"version"`
}

func (p *timedTagged) AfterFind(*gorm.DB) error  { p.Tags = strings.Split(p.TagsRaw, ","); return nil }
func (p *timedTagged) BeforeSave(*gorm.DB) error { p.TagsRaw = strings.Join(p.Tags, ","); return nil }

// The caller's RETURNING makes a struct the row of a rival too: a time does not show that he wrote.
func TestV25_ReturnedRowOfARival(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&timedTagged{}})
	p := stand.Made(t, db, timedTagged{Title: "t", Tags: []string{"a"}})
	rival := stand.Row[timedTagged](t, db, p.ID)
	rival.Tags = []string{"rival"}
	stand.Must(t, db.Save(&rival).Error)
	stand.Must(t, db.Clauses(gormlock.IgnoreVersion(), clause.Returning{}).Model(&p).Update("title", "mine").Error)
	_ = db.Save(&p).Error // refused or not, nothing of the rival's is lost
	stand.Equal(t, "the row", stand.Row[timedTagged](t, db, p.ID).TagsRaw, "rival")
}
