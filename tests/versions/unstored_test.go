package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A trigger keeps rows from being stored: the create says so, and no struct takes the key or the version of another's row.
func TestUnstoredRowIsAnError(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.Must(t, db.Exec(`CREATE FUNCTION keeps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.note = 'A' THEN RETURN NULL; END IF; RETURN NEW; END $$;
		CREATE TRIGGER keeps BEFORE INSERT ON accounts FOR EACH ROW EXECUTE FUNCTION keeps()`).Error)
	none, some := stand.Account{Note: "A", Balance: 1}, []stand.Account{{Note: "A", Balance: 1}, {Note: "B", Balance: 2}}
	for what, write := range map[string]func(db *gorm.DB, one *stand.Account, list *[]stand.Account) error{
		"Create": func(db *gorm.DB, one *stand.Account, _ *[]stand.Account) error { return db.Create(one).Error },
		"Create of a key": func(db *gorm.DB, one *stand.Account, _ *[]stand.Account) error {
			one.ID = 77
			return db.Create(one).Error
		},
		"Save": func(db *gorm.DB, one *stand.Account, _ *[]stand.Account) error { return db.Save(one).Error },
		"upsert": func(db *gorm.DB, one *stand.Account, _ *[]stand.Account) error {
			return db.Clauses(stand.UpdateAll).Create(one).Error
		},
		"slice": func(db *gorm.DB, _ *stand.Account, list *[]stand.Account) error { return db.Create(list).Error },
		"slice, Returning": func(db *gorm.DB, _ *stand.Account, list *[]stand.Account) error {
			return db.Clauses(clause.Returning{}).Create(list).Error
		},
		"slice, Returning some": func(db *gorm.DB, _ *stand.Account, list *[]stand.Account) error {
			return db.Clauses(clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "note"}}}).Create(list).Error
		},
		"slice, Save": func(db *gorm.DB, _ *stand.Account, list *[]stand.Account) error { return db.Save(list).Error },
		"slice of pointers": func(db *gorm.DB, _ *stand.Account, list *[]stand.Account) error {
			return db.Create([]*stand.Account{&(*list)[0], &(*list)[1]}).Error
		},
		"slice of keys": func(db *gorm.DB, _ *stand.Account, list *[]stand.Account) error {
			(*list)[0].ID, (*list)[1].ID = 78, 79
			return db.Create(list).Error
		},
		"CreateInBatches": func(db *gorm.DB, _ *stand.Account, list *[]stand.Account) error {
			return db.CreateInBatches(list, 5).Error
		},
		"map": func(db *gorm.DB, _ *stand.Account, _ *[]stand.Account) error {
			return db.Model(&stand.Account{}).Create(map[string]any{"note": "A", "balance": 1}).Error
		},
		"maps": func(db *gorm.DB, _ *stand.Account, _ *[]stand.Account) error {
			return db.Model(&stand.Account{}).Create(&[]map[string]any{{"note": "A", "balance": 1}, {"note": "B", "balance": 1}}).Error
		},
		"in a transaction": func(db *gorm.DB, _ *stand.Account, list *[]stand.Account) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Create(list).Error })
		},
		"in a transaction, dropped": func(db *gorm.DB, _ *stand.Account, list *[]stand.Account) error {
			return db.Transaction(func(tx *gorm.DB) error { tx.Create(list); return nil })
		},
	} {
		one, list := none, append([]stand.Account(nil), some...)
		if err := write(db, &one, &list); err == nil || !strings.Contains(err.Error(), "kept") {
			t.Error(what, err)
		}
		stand.Equal(t, what+", version", one.Version, 0)
		if len(list) != 2 {
			t.Error(what, list)
			continue
		}
		for i := range list {
			list[i].ID -= map[bool]int64{true: int64(78 + i)}[what == "slice of keys"]
			stand.Equal(t, what, list[i], some[i])
		}
		var n int64
		stand.Must(t, db.Model(&stand.Account{}).Count(&n).Error)
		stand.Equal(t, what+", stored", n, 0)
	}
	// Who allows that rows stay out says so.
	list := []stand.Account{{ID: 1, Note: "A"}, {ID: 2, Note: "B"}}
	tx := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&list)
	stand.Must(t, tx.Error)
	stand.Equal(t, "rows", tx.RowsAffected, 1)
	stand.Equal(t, "left out", list[0], stand.Account{ID: 1, Note: "A"})
	stand.Equal(t, "stored", list[1], stand.Account{ID: 2, Note: "B", Version: 1})
}
