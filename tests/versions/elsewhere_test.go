package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	entry struct {
		ID      int64
		Amount  int64
		Text    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	softEntry struct {
		ID        int64
		Amount    int64
		DeletedAt gorm.DeletedAt
		Version   int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	cornered struct {
		X, Y    int64 `gorm:"primaryKey;autoIncrement:false"`
		Text    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

// staleEntry is a struct that is behind its row by the write of a rival.
func staleEntry(t *testing.T, db *gorm.DB) entry {
	t.Helper()
	mine := entry{Amount: 1, Text: "old"}
	stand.Must(t, db.Create(&mine).Error)
	stand.Must(t, db.Model(&entry{}).Where("id = ?", mine.ID).Update("text", "rival").Error)
	return mine
}

// GORM takes the key of a delete from Model if the destination has none. The version comes from there too.
func TestDelete_ofWhatModelNames(t *testing.T) {
	t.Parallel()
	returned := func(db *gorm.DB, e *entry) (*gorm.DB, *[]entry) {
		var deleted []entry
		return db.Model(e).Clauses(clause.Returning{}).Delete(&deleted), &deleted
	}
	for name, do := range map[string]func(db *gorm.DB, e *entry) *gorm.DB{
		"a slice":                func(db *gorm.DB, e *entry) *gorm.DB { done, _ := returned(db, e); return done },
		"a slice of a slice":     func(db *gorm.DB, e *entry) *gorm.DB { return db.Model(&[]entry{*e}).Delete(&[]entry{}) },
		"a slice of empty ones":  func(db *gorm.DB, e *entry) *gorm.DB { return db.Model(e).Delete(&[]entry{{}}) },
		"a slice of pointers":    func(db *gorm.DB, e *entry) *gorm.DB { return db.Model(e).Delete(&[]*entry{}) },
		"an empty struct":        func(db *gorm.DB, e *entry) *gorm.DB { return db.Model(e).Delete(&entry{}) },
		"an empty struct, a row": func(db *gorm.DB, e *entry) *gorm.DB { return db.Model(&[]*entry{e}).Delete(&entry{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand.OnBoth(t, []any{&entry{}}, func(t *testing.T, db *gorm.DB) {
				mine := staleEntry(t, db)
				stand.MustStale(t, do(db, &mine).Error)
				fresh := stand.Row[entry](t, db, mine.ID)
				done := do(db, &fresh)
				stand.Must(t, done.Error)
				stand.Equal(t, "rows", done.RowsAffected, 1)
				stand.Equal(t, "left", db.Find(&[]entry{}).RowsAffected, 0)
			})
		})
	}
	t.Run("soft", func(t *testing.T) {
		t.Parallel()
		stand.OnBoth(t, []any{&softEntry{}}, func(t *testing.T, db *gorm.DB) {
			mine := softEntry{}
			stand.Must(t, db.Create(&mine).Error)
			stand.Must(t, db.Model(&softEntry{}).Where("id = ?", mine.ID).Update("amount", 7).Error)
			stand.MustStale(t, db.Model(&[]softEntry{mine}).Delete(&[]softEntry{}).Error)
			stand.Equal(t, "left", db.Find(&[]softEntry{}).RowsAffected, 1)
		})
	})
	t.Run("what was deleted", func(t *testing.T) {
		t.Parallel()
		db := stand.Versioned(t, []any{&entry{}})
		mine := entry{Text: "mine"}
		stand.Must(t, db.Create(&mine).Error)
		done, deleted := returned(db, &mine)
		stand.Must(t, done.Error)
		if len(*deleted) != 1 || (*deleted)[0].Text != "mine" {
			t.Errorf("%+v", *deleted)
		}
	})
}

// A Save with conditions, or into the rows of another Model, that writes no row is an error: GORM would go on to an upsert without them.
func TestSave_whoseConditionsDoNotHold(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(db *gorm.DB, e entry) error{
		"of another Model": func(db *gorm.DB, e entry) error {
			return db.Model(&entry{}).Where("id = ? AND amount = 77", e.ID).Save(&entry{ID: e.ID, Amount: 60}).Error
		},
		"of another Model, read": func(db *gorm.DB, e entry) error {
			return db.Model(&entry{}).Where("id = ? AND amount = 77", e.ID).Save(&e).Error
		},
		"of another Model, selected": func(db *gorm.DB, e entry) error {
			return db.Model(&entry{}).Select("*").Where("id = ? AND amount = 77", e.ID).Save(&entry{ID: e.ID, Amount: 60}).Error
		},
		"of another Model, IgnoreVersion": func(db *gorm.DB, e entry) error {
			return db.Clauses(gormlock.IgnoreVersion()).Model(&entry{}).Where("id = ? AND amount = 77", e.ID).Save(&e).Error
		},
		"by value": func(db *gorm.DB, e entry) error {
			return db.Model(&entry{}).Where("amount = 77").Save(entry{ID: e.ID, Amount: 60}).Error
		},
		"of its own": func(db *gorm.DB, e entry) error { return db.Where("amount = 77").Save(&e).Error },
		"of a slice": func(db *gorm.DB, e entry) error { return db.Where("amount = 77").Save(&[]entry{e}).Error },
		"of an upsert": func(db *gorm.DB, e entry) error {
			return db.Where("amount = 77").Clauses(clause.OnConflict{UpdateAll: true}).Create(&e).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand.OnBoth(t, []any{&entry{}}, func(t *testing.T, db *gorm.DB) {
				id := staleEntry(t, db).ID
				now := stand.Row[entry](t, db, id)
				if err := do(db, now); err == nil {
					t.Error("no error")
				}
				stand.Equal(t, "row", stand.Row[entry](t, db, id), now)
			})
		})
	}
	t.Run("of a key with a zero", func(t *testing.T) {
		t.Parallel()
		stand.OnBoth(t, []any{&cornered{}}, func(t *testing.T, db *gorm.DB) {
			stand.Must(t, db.Create(&cornered{Y: 1, Text: "old"}).Error)
			if err := db.Model(&cornered{}).Where("text = ?", "other").Save(&cornered{Y: 1, Text: "mine"}).Error; err == nil {
				t.Error("no error")
			}
		})
	})
	t.Run("a soft-deleted row", func(t *testing.T) {
		t.Parallel()
		stand.OnBoth(t, []any{&softEntry{}}, func(t *testing.T, db *gorm.DB) {
			gone := softEntry{Amount: 1}
			stand.Must(t, db.Create(&gone).Error)
			stand.Must(t, db.Delete(&gone).Error)
			if err := db.Model(&softEntry{}).Where("id = ?", gone.ID).Save(&softEntry{ID: gone.ID, Amount: 9}).Error; err == nil {
				t.Error("no error")
			}
			stand.Equal(t, "left", db.Find(&[]softEntry{}).RowsAffected, 0)
		})
	})
	t.Run("that hold", func(t *testing.T) {
		t.Parallel()
		stand.OnBoth(t, []any{&entry{}}, func(t *testing.T, db *gorm.DB) {
			e := stand.Row[entry](t, db, staleEntry(t, db).ID)
			e.Amount = 60
			stand.Must(t, db.Model(&entry{}).Where("id = ? AND amount = 1", e.ID).Save(&e).Error)
			stand.Equal(t, "amount", stand.Row[entry](t, db, e.ID).Amount, 60)
			first := entry{}
			stand.Must(t, db.Where(entry{Text: "new"}).Attrs(entry{Amount: 5}).FirstOrCreate(&first).Error)
			stand.Must(t, db.Where("text = ?", "newer").Clauses(clause.OnConflict{UpdateAll: true}).FirstOrCreate(&entry{}).Error)
			stand.Must(t, db.Where("amount = 77").Create(&entry{}).Error) // as GORM does
		})
	})
}

// SQLite replaces a row by the way, and no version is compared.
func TestCreate_thatReplaces(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&entry{}}, func(t *testing.T, db *gorm.DB) {
		mine := staleEntry(t, db)
		replace := clause.Insert{Modifier: "OR REPLACE"}
		for _, err := range []error{db.Clauses(replace).Create(&mine).Error, db.Clauses(replace).Save(&[]entry{mine}).Error} {
			if err == nil || !strings.Contains(err.Error(), "INSERT OR REPLACE") {
				t.Errorf("%v", err)
			}
		}
		stand.Equal(t, "row", stand.Row[entry](t, db, mine.ID).Text, "rival")
	})
}

// In a session that a scope returns, GORM forgets that it has begun a transaction, and ends none.
func TestWrite_inASessionOfAScope(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]func(*gorm.DB) *gorm.DB{
		"Session":     func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{}) },
		"WithContext": func(tx *gorm.DB) *gorm.DB { return tx.WithContext(t.Context()) },
		"NewDB":       func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{NewDB: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand.OnBoth(t, []any{&entry{}}, func(t *testing.T, db *gorm.DB) {
				mine := entry{Amount: 1}
				stand.Must(t, db.Create(&mine).Error)
				mine.Amount = 2
				for write, err := range map[string]error{
					"Save": db.Scopes(scope).Save(&mine).Error, "Create": db.Scopes(scope).Create(&entry{}).Error,
					"Delete": db.Scopes(scope).Delete(&mine).Error,
				} {
					if name != "NewDB" && (err == nil || !strings.Contains(err.Error(), "returned a session")) || err == nil {
						t.Errorf("%s: %v", write, err)
					}
				}
				stand.Equal(t, "rows", db.Find(&[]entry{}).RowsAffected, 1)
				stand.Equal(t, "version", mine.Version, 1)
				stand.Must(t, db.Scopes(func(tx *gorm.DB) *gorm.DB { return tx.Where("amount > 0") }).Save(&mine).Error)
				if name != "NewDB" { // in a transaction of the caller there is none to end
					stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return tx.Scopes(scope).Save(&mine).Error }))
					stand.Equal(t, "row", stand.Row[entry](t, db, mine.ID).Version, mine.Version)
				}
			})
		})
	}
}

// A write reads its own columns back.
func TestWrite_withMapColumns(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&entry{}})
	mine := staleEntry(t, db)
	err := db.MapColumns(map[string]string{"text": "amount"}).Clauses(gormlock.ExpectVersion(2)).Model(&mine).Update("amount", gorm.Expr("7")).Error
	if err == nil || !strings.Contains(err.Error(), "MapColumns is for queries") {
		t.Errorf("%v", err)
	}
}
