package versions_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// logbook has hooks, which do what the context says.
type logbook struct {
	ID      int64
	Text    string
	Views   int64 `gormlock:"unversioned"`
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (*logbook) BeforeSave(tx *gorm.DB) error   { return doInHook(tx, "before") }
func (*logbook) BeforeDelete(tx *gorm.DB) error { return doInHook(tx, "before") }
func (*logbook) AfterSave(tx *gorm.DB) error    { return doInHook(tx, "after") }
func (*logbook) AfterDelete(tx *gorm.DB) error  { return doInHook(tx, "after") }

// plainLogbook has hooks, and a version that no tag names.
type plainLogbook struct {
	ID      int64
	Text    string
	N       int64
	Version int64 `gorm:"not null;default:1"`
}

func (*plainLogbook) BeforeSave(tx *gorm.DB) error { return doInHook(tx, "before") }
func (*plainLogbook) AfterSave(tx *gorm.DB) error  { return doInHook(tx, "after") }

// mention is what hooks write: it has no version. A mentioned page has one.
type mention struct {
	ID   int64
	Text string
	N    int64
}

type mentionedPage struct {
	ID      int64
	Text    string
	N       int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type inHookKey string

func doInHook(tx *gorm.DB, when string) error {
	do, _ := tx.Statement.Context.Value(inHookKey(when)).(func(tx *gorm.DB) error)
	if do == nil {
		return nil
	}
	return do(tx)
}

// A schema book is in another schema, and so is a noted logbook, whose table has the name of that of another model.
type schemaBook struct {
	ID      int64
	Text    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type notedLogbook struct {
	ID      int64
	Text    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (*schemaBook) TableName() string              { return "hook_shelf.schema_books" }
func (*notedLogbook) TableName() string            { return "hook_notes.logbooks" }
func (*schemaBook) BeforeSave(tx *gorm.DB) error   { return doInHook(tx, "before") }
func (*schemaBook) BeforeDelete(tx *gorm.DB) error { return doInHook(tx, "before") }

// A session of the tx of a hook carries on with the statement whose hook it is. What is asked of it about another model is an error if it would
// go to another table, and the statement around it compares its version in any case.
func TestSessionInHook(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&logbook{}, &plainLogbook{}, &mention{}, &mentionedPage{}})
	rival := pgtest.Open(t, pgtest.Schema())
	sessions := map[string]func(tx *gorm.DB) *gorm.DB{
		"tx":          func(tx *gorm.DB) *gorm.DB { return tx },
		"new":         func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{NewDB: true}) },
		"WithContext": func(tx *gorm.DB) *gorm.DB { return tx.WithContext(tx.Statement.Context) },
		"Session":     func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{}) },
		"SkipHooks":   func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{SkipHooks: true}) },
	}
	inner := map[string]func(tx *gorm.DB) error{
		"bulk":       func(tx *gorm.DB) error { return tx.Model(&mention{}).Where("id = 77").Update("n", 1).Error },
		"struct":     func(tx *gorm.DB) error { return tx.Model(&mention{ID: 77}).Updates(map[string]any{"n": 1}).Error },
		"save":       func(tx *gorm.DB) error { return tx.Save(&mention{ID: 77, N: 1}).Error },
		"page":       func(tx *gorm.DB) error { return tx.Model(&mentionedPage{ID: 77, Version: 1}).Update("n", 1).Error },
		"pages":      func(tx *gorm.DB) error { return tx.Model(&mentionedPage{}).Where("id = 77").Update("n", 1).Error },
		"save page":  func(tx *gorm.DB) error { return tx.Save(&mentionedPage{ID: 77, N: 1, Version: 1}).Error },
		"touch page": func(tx *gorm.DB) error { return gormlock.Touch(tx, &mentionedPage{ID: 77, Version: 1}) },
		"read page": func(tx *gorm.DB) error {
			var page mentionedPage
			if err := tx.First(&page, 77).Error; err != nil {
				return err
			}
			page.N = 1
			return tx.Session(&gorm.Session{NewDB: true}).Save(&page).Error
		},
		"lock page": func(tx *gorm.DB) error {
			page := mentionedPage{ID: 77}
			if err := gormlock.LockRow(tx, &page); err != nil {
				return err
			}
			return tx.Session(&gorm.Session{NewDB: true}).Model(&page).Update("n", 1).Error
		},
		"in a transaction": func(tx *gorm.DB) error {
			return gormlock.Transaction(tx, func(tx *gorm.DB) error { return tx.Model(&mention{}).Where("id = 77").Update("n", 1).Error })
		},
	}
	outer := map[string]func(db *gorm.DB, d *logbook) error{
		"save":      func(db *gorm.DB, d *logbook) error { d.Text = "mine"; return db.Save(d).Error },
		"update":    func(db *gorm.DB, d *logbook) error { return db.Model(d).Update("text", "mine").Error },
		"views":     func(db *gorm.DB, d *logbook) error { return db.Model(d).Update("views", gorm.Expr("views + 1")).Error },
		"delete":    func(db *gorm.DB, d *logbook) error { return db.Delete(d).Error },
		"create":    func(db *gorm.DB, _ *logbook) error { return db.Create(&logbook{ID: 3, Text: "mine"}).Error },
		"unguarded": func(db *gorm.DB, _ *logbook) error { return db.Save(&plainLogbook{ID: 1, Text: "mine"}).Error },
	}
	for way, write := range outer {
		for name, session := range sessions {
			for kind, do := range inner {
				for _, when := range []string{"before", "after"} {
					for _, rivals := range []bool{false, true} {
						what := fmt.Sprintf("%s, %s by %s, %s, rival=%t", way, kind, name, when, rivals)
						stand.MustDo(t, rival.Session(&gorm.Session{NewDB: true}).Exec(`DELETE FROM logbooks; DELETE FROM plain_logbooks; DELETE FROM mentions; DELETE FROM mentioned_pages;
							INSERT INTO logbooks (id, text, views) VALUES (1, '', 0), (77, '', 0); INSERT INTO plain_logbooks (id, text, n) VALUES (1, '', 0), (77, 'another', 0);
							INSERT INTO mentions (id, text, n) VALUES (1, '', 0), (77, '', 0); INSERT INTO mentioned_pages (id, text, n) VALUES (1, '', 0), (77, '', 0)`))
						d := stand.Row[logbook](t, db, 1)
						rivals := rivals && when == "before" && (way == "save" || way == "update" || way == "views" || way == "delete")
						within := false
						hook := func(tx *gorm.DB) error {
							if within { // the session of a hook has its hooks
								return nil
							}
							within = true
							err := do(session(tx))
							if rivals {
								stand.MustDo(t, rival.Exec("UPDATE logbooks SET text = 'rival', version = version + 1 WHERE id = 1"))
							}
							return err
						}
						err := write(db.WithContext(context.WithValue(t.Context(), inHookKey(when), hook)), &d)
						var counted int64
						stand.MustDo(t, rival.Raw("SELECT (SELECT count(*) FROM mentions WHERE n = 1) + (SELECT count(*) FROM mentioned_pages WHERE version = 2)").Scan(&counted))
						var now []logbook
						stand.MustDo(t, rival.Find(&now, 1))
						switch {
						case err == nil && rivals:
							t.Errorf("%s: nil, and a rival had written: %v", what, now)
						case err == nil && counted != 1 && (way != "unguarded" || strings.Contains(kind, "page")): // nothing of that is gormlock's
							t.Errorf("%s: nil, and the hook wrote nothing", what)
						case err == nil && len(now) == 1 && now[0] != d && way != "create" && way != "unguarded":
							t.Errorf("%s: the struct is %v, the row %v", what, d, now[0])
						case err == nil && strings.HasSuffix(kind, "page") && stand.Row[mentionedPage](t, rival, 77).Text != "":
							t.Errorf("%s: nil, and the page has the text of another row", what)
						case err != nil && !rivals && (name == "tx" || name == "new"):
							t.Errorf("%s: %v", what, err)
						case err != nil && rivals && (name == "tx" || name == "new") && !errors.Is(err, gormlock.ErrStale):
							t.Errorf("%s: %v", what, err)
						case err != nil && counted != 0:
							t.Errorf("%s: %v, and the hook's row was written", what, err)
						}
						var other logbook
						stand.MustDo(t, rival.First(&other, 77))
						stand.Equal(t, what+": another logbook", other, logbook{ID: 77, Version: 1})
					}
				}
			}
		}
	}
}

// The same where tables lie in schemas: neither is the name of the table all that tells models apart, nor has the caller named it.
func TestSessionInHook_ofAnotherSchema(t *testing.T) {
	t.Parallel()
	db := stand.Open(t, pgtest.Through(pgtest.Database(t)))
	stand.MustDo(t, db.Exec("CREATE SCHEMA hook_shelf; CREATE SCHEMA hook_notes"))
	stand.Must(t, db.AutoMigrate(&logbook{}, &schemaBook{}, &mention{}, &notedLogbook{}))
	var within bool
	for kind, do := range map[string]func(tx *gorm.DB) error{
		"bulk of mentions": func(tx *gorm.DB) error { return tx.Model(&mention{}).Where("id = 77").Update("text", "hook").Error },
		"mention":          func(tx *gorm.DB) error { return tx.Model(&mention{ID: 77}).Update("text", "hook").Error },
		"bulk of notes": func(tx *gorm.DB) error {
			return tx.Model(&notedLogbook{}).Where("id = 77").Update("text", "hook").Error
		},
		"note": func(tx *gorm.DB) error {
			return tx.Model(&notedLogbook{ID: 77, Version: 1}).Update("text", "hook").Error
		},
		"touch": func(tx *gorm.DB) error { return gormlock.Touch(tx, &notedLogbook{ID: 77, Version: 1}) },
		"delete of notes": func(tx *gorm.DB) error {
			return tx.Model(&notedLogbook{}).Where("id = 77").Delete(&notedLogbook{}).Error
		},
		"create of a note": func(tx *gorm.DB) error {
			return tx.Model(&notedLogbook{}).Create(map[string]any{"id": 5, "text": "x"}).Error
		},
	} {
		for name, session := range map[string]func(tx *gorm.DB) *gorm.DB{
			"tx":          func(tx *gorm.DB) *gorm.DB { return tx },
			"WithContext": func(tx *gorm.DB) *gorm.DB { return tx.WithContext(tx.Statement.Context) },
			"SkipHooks":   func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{SkipHooks: true}) },
		} {
			for way, write := range map[string]func(db *gorm.DB) error{
				"save":          func(db *gorm.DB) error { return db.Save(&logbook{ID: 1, Text: "mine", Version: 1}).Error },
				"delete":        func(db *gorm.DB) error { return db.Delete(&logbook{ID: 1, Version: 1}).Error },
				"save shelf":    func(db *gorm.DB) error { return db.Save(&schemaBook{ID: 1, Text: "mine", Version: 1}).Error },
				"create shelf":  func(db *gorm.DB) error { return db.Create(&schemaBook{ID: 3}).Error },
				"delete shelf":  func(db *gorm.DB) error { return db.Delete(&schemaBook{ID: 1, Version: 1}).Error },
				"update shelf":  func(db *gorm.DB) error { return db.Model(&schemaBook{ID: 1, Version: 1}).Update("text", "mine").Error },
				"bulk of shelf": func(db *gorm.DB) error { return db.Model(&schemaBook{}).Where("id = 1").Update("text", "mine").Error },
			} {
				what := fmt.Sprintf("%s, %s by %s", way, kind, name)
				for _, table := range []string{"logbooks", "hook_shelf.schema_books", "hook_notes.logbooks", "mentions"} {
					stand.MustDo(t, db.Exec("DELETE FROM "+table))
					stand.MustDo(t, db.Exec("INSERT INTO "+table+" (id, text) VALUES (1, ''), (77, '')"))
				}
				within = false
				hook := func(tx *gorm.DB) error {
					if within {
						return nil
					}
					within = true
					return do(session(tx))
				}
				err := write(db.WithContext(context.WithValue(t.Context(), inHookKey("before"), hook)))
				if err != nil && name == "tx" {
					t.Errorf("%s: %v", what, err)
				}
				var done int64
				stand.MustDo(t, db.Raw(`SELECT (SELECT count(*) FROM mentions WHERE text = 'hook') + (SELECT count(*) FROM hook_notes.logbooks WHERE text = 'hook' OR version = 2 OR id = 5)
					+ (SELECT 1 - count(*) FROM hook_notes.logbooks WHERE id = 77)`).Scan(&done))
				if err == nil && done == 0 {
					t.Errorf("%s: nil, and the hook wrote nothing", what)
				}
				stand.Equal(t, what+": another logbook", stand.Row[logbook](t, db, 77), logbook{ID: 77, Version: 1})
				stand.Equal(t, what+": another book", stand.Row[schemaBook](t, db, 77), schemaBook{ID: 77, Version: 1})
			}
		}
	}
}
