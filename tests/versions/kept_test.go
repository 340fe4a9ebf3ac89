package versions_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// keptRow is a row that a trigger leaves as it was.
type keptRow struct {
	ID      int64
	Note    string
	Version int64 `gormlock:"version"`
}

// keptRails is one whose versions begin at 0.
type keptRails struct {
	ID          int64
	Note        string
	LockVersion *int32 `gormlock:"version,rails"`
}

// keptTime is one whose version is a time.
type keptTime struct {
	ID      int64
	Note    string
	Version time.Time `gormlock:"version"`
}

// keptSoft is one that is deleted softly.
type keptSoft struct {
	ID        int64
	Note      string
	Version   int64 `gormlock:"version"`
	DeletedAt gorm.DeletedAt
}

// keeps are the ways of a trigger to leave a row, or its version, as it was.
func keeps(version string) map[string]string {
	return map[string]string{
		"returns OLD":                        "RETURN old;",
		"sets the version back":              "new." + version + " := old." + version + "; RETURN new;",
		"sets it to NULL":                    "new." + version + " := NULL; RETURN new;",
		"returns NULL":                       "RETURN NULL;",
		"changes, and sets the version back": "new.note := new.note || '!'; new." + version + " := old." + version + "; RETURN new;",
	}
}

// A row that a trigger leaves as it was is not written, and the server counts it as if it were.
func TestWrite_thatATriggerKeeps(t *testing.T) {
	t.Parallel()
	t.Run("bigint", func(t *testing.T) { kept[keptRow](t, "kept_rows", "version") })
	t.Run("from 0", func(t *testing.T) { kept[keptRails](t, "kept_rails", "lock_version") })
	t.Run("a time", func(t *testing.T) { kept[keptTime](t, "kept_times", "version") })
	t.Run("soft", func(t *testing.T) { kept[keptSoft](t, "kept_softs", "version") })
}

func kept[T any](t *testing.T, table, version string) {
	t.Helper()
	t.Parallel()
	set := map[string]any{"note": "new"}
	at := func(row *T) any {
		return reflect.Indirect(reflect.ValueOf(row).Elem().FieldByNameFunc(func(n string) bool { return strings.HasSuffix(n, "Version") })).Interface()
	}
	var other *T // at another version
	writes := map[string]func(db *gorm.DB, row *T) error{
		"Save": func(db *gorm.DB, row *T) error {
			reflect.ValueOf(row).Elem().FieldByName("Note").SetString("new")
			return db.Save(row).Error
		},
		"Update":        func(db *gorm.DB, row *T) error { return db.Model(row).Update("note", "new").Error },
		"Updates":       func(db *gorm.DB, row *T) error { return db.Model(row).Updates(set).Error },
		"UpdateColumn":  func(db *gorm.DB, row *T) error { return db.Model(row).UpdateColumn("note", "new").Error },
		"an expression": func(db *gorm.DB, row *T) error { return db.Model(row).Update("note", gorm.Expr("note||'x'")).Error },
		"RETURNING":     func(db *gorm.DB, row *T) error { return db.Model(row).Clauses(clause.Returning{}).Updates(set).Error },
		"RETURNING a note": func(db *gorm.DB, row *T) error {
			return db.Model(row).Clauses(clause.Returning{Columns: []clause.Column{{Name: "note"}}}).Updates(set).Error
		},
		"Where": func(db *gorm.DB, row *T) error {
			return db.Model(row).Where("note <> ?", "other").Or("note = ?", "old").Updates(set).Error
		},
		"Touch": func(db *gorm.DB, row *T) error { return gormlock.Touch(db, row) },
		"ExpectVersion": func(db *gorm.DB, row *T) error {
			return db.Model(row).Clauses(gormlock.ExpectVersion(at(row))).Updates(set).Error
		},
		"a bulk that returns": func(db *gorm.DB, row *T) error {
			return db.Model(&[]T{}).Where("id = ?", reflect.ValueOf(row).Elem().FieldByName("ID").Int()).Clauses(clause.Returning{}, gormlock.ExpectVersion(at(row))).Updates(set).Error
		},
		"a bulk": func(db *gorm.DB, row *T) error {
			return db.Model(new(T)).Where(row).Clauses(gormlock.ExpectVersion(at(row))).Updates(set).Error
		},
		"a slice":                 func(db *gorm.DB, row *T) error { return db.Model(&[]*T{row}).Updates(set).Error },
		"a slice of two versions": func(db *gorm.DB, row *T) error { return db.Model(&[]*T{row, other}).Updates(set).Error },
		"Save of many":            func(db *gorm.DB, row *T) error { return db.Save([]*T{row}).Error },
		"an upsert": func(db *gorm.DB, row *T) error {
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(row).Error
		},
		"a soft delete": func(db *gorm.DB, row *T) error { return db.Delete(row).Error },
	}
	if _, soft := reflect.TypeFor[T]().FieldByName("DeletedAt"); !soft {
		delete(writes, "a soft delete") // a trigger before updates does not see it
	}
	db := stand.Versioned(t, []any{new(T)})
	db.Logger = logger.Discard
	without := db.Session(&gorm.Session{SkipDefaultTransaction: true})
	stand.MustDo(t, db.Exec("CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$;"+
		"CREATE TRIGGER keep BEFORE UPDATE ON "+table+" FOR EACH ROW EXECUTE FUNCTION keep(); ALTER TABLE "+table+" ALTER "+version+" DROP NOT NULL"))
	for how, body := range keeps(version) {
		for name, write := range writes {
			if how == "returns NULL" && name == "Where" {
				continue // no row is as Where says
			}
			if version == "lock_version" && name == "an upsert" {
				continue // a struct at 0 may be new
			}
			for _, within := range []string{"its own transaction", "another", "none"} {
				row := new(T)
				reflect.ValueOf(row).Elem().FieldByName("Note").SetString("old")
				stand.MustDo(t, db.Create(row))
				id := reflect.ValueOf(row).Elem().FieldByName("ID").Int()
				stand.MustDo(t, db.First(row, id))
				before := *row
				other = new(T)
				stand.MustDo(t, db.Create(other))
				stand.MustDo(t, db.Model(other).Update("note", "other"))
				trigger := func(body string) {
					stand.MustDo(t, db.Exec("CREATE OR REPLACE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+body+" END $$"))
				}
				trigger(body)
				var err error
				switch within {
				case "another":
					err = db.Transaction(func(tx *gorm.DB) error { return write(tx, row) })
				case "none":
					err = write(without, row)
				default:
					err = write(db, row)
				}
				if err == nil || stand.FromServer(err) || !strings.Contains(err.Error(), "trigger") {
					t.Errorf("%s, %s, in %s: %v", how, name, within, err)
				}
				if now := stand.Row[T](t, db, id); !reflect.DeepEqual(now, before) {
					t.Errorf("%s, %s, in %s: the row was %+v, and is %+v", how, name, within, before, now)
				}
				trigger("RETURN new;")
				if err := db.Model(row).Update("note", "newer").Error; err != nil {
					t.Errorf("%s, %s, in %s: the next write: %v", how, name, within, err)
				}
			}
		}
	}
}

// A rule that returns no rows does not say that it wrote one.
func TestUpdate_throughARule(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&keptRow{}})
	row := stand.Made(t, db, keptRow{Note: "old"})
	rule := "CREATE OR REPLACE RULE to_rows AS ON UPDATE TO kept_view DO INSTEAD UPDATE kept_rows SET note = new.note, version = new.version WHERE id = old.id"
	stand.MustDo(t, db.Exec("CREATE VIEW kept_view AS SELECT *, 1 AS one FROM kept_rows UNION ALL SELECT 0, '', 1, 1 WHERE false; "+rule))
	if err := db.Table("kept_view").Model(&row).Update("note", "new").Error; err == nil || !strings.Contains(err.Error(), "add RETURNING to the rule") {
		t.Error(err)
	}
	stand.MustDo(t, db.Exec(rule+" RETURNING kept_rows.*, 1"))
	stand.Must(t, db.Table("kept_view").Model(&row).Update("note", "new").Error)
	stand.Equal(t, "row", stand.Row[keptRow](t, db, row.ID), row)
}

// What else the server does not support is told as the server tells it, whatever its language.
func TestUpdate_thatIsNotSupported(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&keptRow{}})
	row := stand.Made(t, db, keptRow{Note: "old"})
	stand.MustDo(t, db.Exec("CREATE FUNCTION not_now() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '0A000'; END $$;"+
		"CREATE TRIGGER not_now BEFORE UPDATE ON kept_rows FOR EACH ROW EXECUTE FUNCTION not_now()"))
	if err := db.Model(&row).Update("note", "new").Error; err == nil || strings.Contains(err.Error(), "rule") || !strings.Contains(err.Error(), "not now") {
		t.Error(err)
	}
}

// now() is the time at which the transaction began: a row may have that already, or a later one.
func TestUpdate_besideATriggerOfNow(t *testing.T) {
	t.Parallel()
	db, other := stand.Stored(t, keptTime{Note: "old"})
	stand.MustDo(t, db.Exec("CREATE FUNCTION moved() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.version := now(); RETURN new; END $$;"+
		"CREATE TRIGGER moved BEFORE UPDATE ON kept_times FOR EACH ROW EXECUTE FUNCTION moved()"))
	writes := map[string]func(tx *gorm.DB, row *keptTime) error{
		"Update": func(tx *gorm.DB, row *keptTime) error { return tx.Model(row).Update("note", "new").Error },
		"Save":   func(tx *gorm.DB, row *keptTime) error { return tx.Save(row).Error },
		"expression": func(tx *gorm.DB, row *keptTime) error {
			return tx.Model(row).Update("note", gorm.Expr("note || '!'")).Error
		},
		"RETURNING": func(tx *gorm.DB, row *keptTime) error {
			return tx.Model(row).Clauses(clause.Returning{}).Update("note", "new").Error
		},
		"of many": func(tx *gorm.DB, row *keptTime) error { return tx.Model(&[]*keptTime{row}).Update("note", "new").Error },
	}
	befores := map[string]func(tx *gorm.DB) *keptTime{
		"read":    func(tx *gorm.DB) *keptTime { row := stand.Row[keptTime](t, tx, other.ID); return &row },
		"created": func(tx *gorm.DB) *keptTime { row := stand.Made(t, tx, keptTime{}); return &row },
		"created ahead": func(tx *gorm.DB) *keptTime {
			row := stand.Made(t, tx, keptTime{Version: time.Now().Add(time.Hour)})
			return &row
		},
		"written by SQL": func(tx *gorm.DB) *keptTime {
			stand.MustDo(t, tx.Exec("UPDATE kept_times SET note = 'sql'"))
			row := stand.Row[keptTime](t, tx, other.ID)
			return &row
		},
		"written before": func(tx *gorm.DB) *keptTime {
			row := stand.Row[keptTime](t, tx, other.ID)
			stand.MustDo(t, tx.Model(&row).Update("note", "before"))
			return &row
		},
		"of a rival's": func(tx *gorm.DB) *keptTime {
			stand.MustDo(t, tx.Exec("SELECT 1"))
			stand.MustDo(t, db.Exec("UPDATE kept_times SET note = 'rival'"))
			row := stand.Row[keptTime](t, tx, other.ID)
			return &row
		},
	}
	for name, write := range writes {
		for how, before := range befores {
			if name == "of many" && how == "written by SQL" {
				continue // that the version is the one it had is doubtful there
			}
			var row *keptTime
			if err := db.Transaction(func(tx *gorm.DB) error {
				row = before(tx)
				return errors.Join(write(tx, row), write(tx, row))
			}); err != nil {
				t.Errorf("%s, %s: %v", name, how, err)
				continue
			}
			if now := stand.Row[keptTime](t, db, row.ID); !now.Version.Equal(row.Version) {
				t.Errorf("%s, %s: %v, and the row has %v", name, how, row.Version, now.Version)
			}
		}
	}
}

// What else fails in a statement that looks at the version behind it is not taken for a row that was kept.
func TestUpdate_thatFailsOtherwise(t *testing.T) {
	t.Parallel()
	db, row := stand.Stored(t, keptRow{Note: "old"})
	db.Logger = logger.Discard
	stand.MustDo(t, db.Exec("CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF new.note = 'bad' THEN RAISE EXCEPTION 'mine' USING ERRCODE = '0A000'; END IF;"+
		"PERFORM 'yes or no'::boolean; RETURN new; END $$; CREATE TRIGGER fails BEFORE UPDATE ON kept_rows FOR EACH ROW EXECUTE FUNCTION fails()"))
	for name, update := range map[string]func(*gorm.DB) *gorm.DB{
		"a trigger's boolean": func(q *gorm.DB) *gorm.DB { return q.Update("note", "new") },
		"a trigger's feature": func(q *gorm.DB) *gorm.DB { return q.Update("note", "bad") },
		"a condition":         func(q *gorm.DB) *gorm.DB { return q.Where("(note || 'x')::boolean").Update("note", "new") },
		"a value":             func(q *gorm.DB) *gorm.DB { return q.Update("note", gorm.Expr("((note || 'x')::boolean)::text")) },
	} {
		if err := update(db.Model(&row)).Error; !stand.FromServer(err) || strings.Contains(err.Error(), "gormlock") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
