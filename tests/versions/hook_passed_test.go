package versions_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A session of the tx of a hook carries on with the conditions, the columns and the clauses of the statement whose hook it is. What it writes of
// the same model is written as its caller has said it, or is an error.
func TestSessionInHook_passesNothingOn(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&logbook{}})
	untouched := logbook{ID: 77, Text: "before", Views: 9, Version: 1}
	type write struct {
		do   func(tx *gorm.DB) error
		want []logbook // of row 77 and of row 5; nil: it must fail
	}
	hooked := logbook{ID: 77, Text: "hook", Views: 9, Version: 2}
	inner := map[string]write{
		"bulk":   {func(tx *gorm.DB) error { return tx.Model(&logbook{}).Where("id = 77").Update("text", "hook").Error }, []logbook{hooked}},
		"struct": {func(tx *gorm.DB) error { return tx.Model(&logbook{ID: 77, Version: 1}).Update("text", "hook").Error }, []logbook{hooked}},
		"updates": {func(tx *gorm.DB) error {
			return tx.Model(&logbook{ID: 77, Version: 1}).Updates(logbook{Text: "hook"}).Error
		}, []logbook{hooked}},
		"map": {func(tx *gorm.DB) error {
			return tx.Model(&logbook{ID: 77, Version: 1}).Updates(map[string]any{"text": "hook"}).Error
		}, []logbook{hooked}},
		"column": {func(tx *gorm.DB) error {
			return tx.Model(&logbook{ID: 77, Version: 1}).UpdateColumn("text", "hook").Error
		}, []logbook{hooked}},
		"save": {func(tx *gorm.DB) error { return tx.Save(&logbook{ID: 77, Text: "hook", Views: 9, Version: 1}).Error }, []logbook{hooked}},
		"save slice": {func(tx *gorm.DB) error {
			return tx.Save([]*logbook{{ID: 77, Text: "hook", Views: 9, Version: 1}}).Error
		}, []logbook{hooked}},
		"delete":          {func(tx *gorm.DB) error { return tx.Delete(&logbook{ID: 77, Version: 1}).Error }, []logbook{}},
		"bulk delete":     {func(tx *gorm.DB) error { return tx.Where("id = 77").Delete(&logbook{}).Error }, []logbook{}},
		"delete by a key": {func(tx *gorm.DB) error { return tx.Delete(&logbook{}, 77).Error }, []logbook{}},
		"delete slice":    {func(tx *gorm.DB) error { return tx.Delete([]logbook{{ID: 77, Version: 1}}).Error }, []logbook{}},
		"delete of many":  {func(tx *gorm.DB) error { return tx.Delete(&[]logbook{}, "id = 77").Error }, []logbook{}},
		"delete of a model": {func(tx *gorm.DB) error {
			return tx.Model(&logbook{ID: 77, Version: 1}).Delete(&logbook{}).Error
		}, []logbook{}},
		"updates where": {func(tx *gorm.DB) error {
			return tx.Where("id = 77").Updates(&logbook{ID: 77, Text: "hook", Version: 1}).Error
		}, []logbook{hooked}},
		"updates itself":  {func(tx *gorm.DB) error { return tx.Updates(&logbook{ID: 77, Text: "hook", Version: 1}).Error }, []logbook{hooked}},
		"updates of none": {func(tx *gorm.DB) error { return tx.Where("id = 77").Updates(logbook{Text: "hook"}).Error }, nil},
		"where save": {func(tx *gorm.DB) error {
			return tx.Where("id = 77").Save(&logbook{ID: 77, Text: "hook", Views: 9, Version: 1}).Error
		}, []logbook{hooked}},
		"create": {func(tx *gorm.DB) error { return tx.Create(&logbook{ID: 5, Text: "hook", Views: 1}).Error }, []logbook{{ID: 5, Text: "hook", Views: 1, Version: 1}, untouched}},
		"create maps": {func(tx *gorm.DB) error {
			return tx.Model(&logbook{}).Create(map[string]any{"id": 5, "text": "hook", "views": 1}).Error
		}, []logbook{{ID: 5, Text: "hook", Views: 1, Version: 1}, untouched}},
		"touch": {func(tx *gorm.DB) error { return gormlock.Touch(tx, &logbook{ID: 77, Version: 1}) }, []logbook{{ID: 77, Text: "before", Views: 9, Version: 2}}},
		"merge": {func(tx *gorm.DB) error {
			return gormlock.SaveMerged(tx, &logbook{ID: 77, Text: "hook", Views: 9, Version: 1}, &logbook{ID: 77, Text: "before", Views: 9, Version: 1})
		}, []logbook{hooked}},
		"lock": {func(tx *gorm.DB) error {
			row := logbook{ID: 77}
			if err := gormlock.LockRow(tx, &row); err != nil {
				return err
			}
			return tx.Session(&gorm.Session{NewDB: true}).Model(&row).Update("text", "hook").Error
		}, []logbook{hooked}},
		"claim": {func(tx *gorm.DB) error {
			_, err := gormlock.Claim[logbook](tx, 5, map[string]any{"text": "hook"}, func(q *gorm.DB) *gorm.DB { return q.Where("id = 77") })
			return err
		}, []logbook{hooked}},
		"stale struct": {func(tx *gorm.DB) error { return tx.Model(&logbook{ID: 77, Version: 3}).Update("text", "hook").Error }, nil},
		"stale save":   {func(tx *gorm.DB) error { return tx.Save(&logbook{ID: 77, Text: "hook", Version: 3}).Error }, nil},
		"stale delete": {func(tx *gorm.DB) error { return tx.Delete(&logbook{ID: 77, Version: 3}).Error }, nil},
		"same key":     {func(tx *gorm.DB) error { return tx.Create(&logbook{ID: 77, Text: "hook"}).Error }, nil},
		"same key map": {func(tx *gorm.DB) error {
			return tx.Model(&logbook{}).Create(map[string]any{"id": 77, "text": "hook"}).Error
		}, nil},
	}
	outer := map[string]func(db *gorm.DB, d *logbook) error{
		"save":                 func(db *gorm.DB, d *logbook) error { return db.Save(d).Error },
		"save slice":           func(db *gorm.DB, d *logbook) error { return db.Save([]*logbook{d}).Error },
		"save where":           func(db *gorm.DB, d *logbook) error { return db.Where("views = 0").Save(d).Error },
		"save by a scope":      func(db *gorm.DB, d *logbook) error { return db.Scopes(ofNoViews).Save(d).Error },
		"save selected":        func(db *gorm.DB, d *logbook) error { return db.Select("views").Save(d).Error },
		"save but text":        func(db *gorm.DB, d *logbook) error { return db.Omit("text").Save(d).Error },
		"save by itself":       func(db *gorm.DB, d *logbook) error { return db.Omit(clause.Associations).Save(d).Error },
		"save slice by itself": func(db *gorm.DB, d *logbook) error { return db.Omit(clause.Associations).Save([]*logbook{d}).Error },
		"save ignoring":        func(db *gorm.DB, d *logbook) error { return db.Clauses(gormlock.IgnoreVersion()).Save(d).Error },
		"save expecting":       func(db *gorm.DB, d *logbook) error { return db.Clauses(gormlock.ExpectVersion(1)).Save(d).Error },
		"update":               func(db *gorm.DB, d *logbook) error { return db.Model(d).Update("views", 1).Error },
		"update where":         func(db *gorm.DB, d *logbook) error { return db.Model(d).Where("views = 0").Update("views", 1).Error },
		"update all":           func(db *gorm.DB, d *logbook) error { return db.Model(d).Select("*").Updates(d).Error },
		"update preserving": func(db *gorm.DB, d *logbook) error {
			return db.Model(d).Clauses(gormlock.PreserveVersion()).Update("views", 1).Error
		},
		"update unchanged": func(db *gorm.DB, d *logbook) error {
			return db.Model(d).Clauses(gormlock.IfUnchanged(d, "views")).Update("views", 1).Error
		},
		"update unscoped": func(db *gorm.DB, d *logbook) error { return db.Unscoped().Model(d).Update("views", 1).Error },
		"bulk": func(db *gorm.DB, _ *logbook) error {
			return db.Model(&logbook{}).Where("id = 1").Update("views", 1).Error
		},
		"delete":           func(db *gorm.DB, d *logbook) error { return db.Delete(d).Error },
		"delete by key":    func(db *gorm.DB, _ *logbook) error { return db.Delete(&logbook{}, 1).Error },
		"delete returning": func(db *gorm.DB, d *logbook) error { return db.Clauses(clause.Returning{}).Delete(d).Error },
		"create":           func(db *gorm.DB, _ *logbook) error { return db.Create(&logbook{ID: 3}).Error },
		"create some":      func(db *gorm.DB, _ *logbook) error { return db.Select("id").Create(&logbook{ID: 3}).Error },
		"upsert": func(db *gorm.DB, _ *logbook) error {
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&logbook{ID: 3}).Error
		},
		"create or nothing": func(db *gorm.DB, _ *logbook) error {
			return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&logbook{ID: 3}).Error
		},
	}
	refused := map[bool]int{}
	for way, around := range outer {
		for kind, write := range inner {
			for name, session := range map[string]func(tx *gorm.DB) *gorm.DB{
				"tx":          func(tx *gorm.DB) *gorm.DB { return tx },
				"NewDB":       func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{NewDB: true}) },
				"WithContext": func(tx *gorm.DB) *gorm.DB { return tx.WithContext(tx.Statement.Context) },
				"Session":     func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{}) },
			} {
				what := fmt.Sprintf("%s, %s by %s", way, kind, name)
				stand.MustDo(t, db.Exec("DELETE FROM logbooks"))
				stand.MustDo(t, db.Exec("INSERT INTO logbooks (id, text, views) VALUES (1, '', 0), (77, 'before', 9)"))
				within := false
				var err error
				hook := func(tx *gorm.DB) error {
					if within {
						return nil
					}
					within = true
					err = write.do(session(tx))
					return err
				}
				d := stand.Row[logbook](t, db, 1)
				outer := around(db.WithContext(context.WithValue(t.Context(), inHookKey("before"), hook)), &d)
				if !within {
					t.Fatalf("%s: no hook: %v", what, outer)
				}
				want := write.want
				if fresh := name == "tx" || name == "NewDB"; err != nil {
					refused[fresh]++
					bare := slices.Contains([]string{"update", "delete", "create"}, way) && slices.Contains([]string{"bulk", "struct", "updates", "map", "column", "touch"}, kind)
					if (fresh || bare) && want != nil { // a bare statement passes on nothing that matters to a write by Model
						t.Errorf("%s: %v", what, err)
					}
					want = []logbook{untouched}
				} else if outer != nil {
					t.Errorf("%s: the statement around it: %v", what, outer)
				}
				var rows []logbook
				stand.MustDo(t, db.Order("id").Find(&rows, "id IN (5, 77)"))
				if want == nil || fmt.Sprint(rows) != fmt.Sprint(want) {
					t.Errorf("%s: %v: %v", what, err, rows)
				}
			}
		}
	}
	t.Logf("refused: %v", refused)
}

func ofNoViews(db *gorm.DB) *gorm.DB { return db.Where("views = 0") }

type hookedAlbum struct {
	ID      int64
	Name    string
	Songs   []hookedSong `gorm:"foreignKey:AlbumID"`
	Version int64        `gorm:"not null;default:1" gormlock:"version"`
}

type hookedSong struct {
	ID, AlbumID int64
}

func (a *hookedAlbum) BeforeUpdate(tx *gorm.DB) error {
	if len(a.Songs) > 0 {
		return nil
	}
	return tx.WithContext(tx.Statement.Context).Model(a).Association("Songs").Append(&hookedSong{})
}

// The struct that a Save writes anyway may be written with all its columns in its hook too, as an association does after it has stored children.
func TestSessionInHook_appendsToItsStruct(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&hookedAlbum{}, &hookedSong{}})
	album := hookedAlbum{Name: "first"}
	stand.MustDo(t, db.Create(&album))
	album.Name = "second"
	stand.MustDo(t, db.Save(&album))
	var stored hookedAlbum
	stand.MustDo(t, db.Preload("Songs").First(&stored))
	if stored.Name != "second" || stored.Version != 2 || album.Version != 2 || len(stored.Songs) != 1 {
		t.Errorf("stored %+v, in memory %+v", stored, album)
	}
}

// A session of the tx of a hook keeps the model, so what it sends to a table that Table names would get a version there.
func TestSessionInHook_ofAnotherTable(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&logbook{}})
	stand.MustDo(t, db.Exec("CREATE TABLE old_logbooks (id bigint, text text, version bigint)"))
	for name, write := range map[string]func(tx *gorm.DB) error{
		"create": func(tx *gorm.DB) error {
			return tx.Table("old_logbooks").Create(map[string]any{"id": 5, "text": "hook"}).Error
		},
		"update": func(tx *gorm.DB) error {
			return tx.Table("old_logbooks").Where("id = 4").Update("text", "hook").Error
		},
	} {
		for _, session := range []string{"tx", "WithContext"} {
			stand.MustDo(t, db.Exec("DELETE FROM old_logbooks"))
			stand.MustDo(t, db.Exec("INSERT INTO old_logbooks (id, text, version) VALUES (4, '', 1)"))
			within := false
			var err error
			hook := func(tx *gorm.DB) error {
				if !within {
					within = true
					if session == "WithContext" {
						tx = tx.WithContext(tx.Statement.Context)
					}
					err = write(tx)
				}
				return nil
			}
			stand.MustDo(t, db.WithContext(context.WithValue(t.Context(), inHookKey("before"), hook)).Create(&logbook{}))
			var moved int64
			stand.MustDo(t, db.Raw("SELECT count(*) FROM old_logbooks WHERE version <> 1").Scan(&moved))
			if moved > 0 || (session == "WithContext") == (err == nil) {
				t.Errorf("%s by %s: %v, and %d rows of another version", name, session, err, moved)
			}
		}
	}
}
