package versions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// After an upsert the structs are their rows, whatever it updates, and can be written next.
func TestUpsert_leavesRows(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	for name, conflict := range map[string]clause.OnConflict{
		"all columns":  {UpdateAll: true},
		"some columns": {Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"note"})},
		"expressions":  {Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"balance": gorm.Expr("accounts.balance + 1")})},
	} {
		t.Run(name, func(t *testing.T) {
			old := stand.Made(t, db, stand.Account{Balance: 7, Note: "old"})
			both := []stand.Account{{ID: old.ID, Balance: 1, Note: "new"}, {Balance: 2, Note: "inserted"}}
			stand.Must(t, db.Clauses(conflict).Create(&both).Error)
			for i := range both {
				stand.Equal(t, "the struct", both[i], stand.Row[stand.Account](t, db, both[i].ID))
				stand.Must(t, db.Model(&both[i]).Update("balance", 9).Error)
			}
		})
	}
}

// The structs of rows that an upsert neither inserted nor updated are unread.
func TestUpsert_leavesSkippedStructsUnread(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	never := clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "false"}}}
	for name, conflict := range map[string]clause.OnConflict{
		"DoNothing":               {DoNothing: true},
		"Where":                   {Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"note"}), Where: never},
		"Where of UpdateAll":      {Columns: []clause.Column{{Name: "id"}}, UpdateAll: true, Where: never},
		"Where, with expressions": {Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"balance": gorm.Expr("accounts.balance + 1")}), Where: never},
	} {
		for how, with := range map[string]*gorm.DB{"": db, ", preserved": db.Clauses(gormlock.PreserveVersion())} {
			t.Run(name+how, func(t *testing.T) {
				old := stand.Made(t, db, stand.Account{Balance: 7, Note: "old"})
				skipped := stand.Account{ID: old.ID, Balance: 1}
				done := with.Clauses(conflict).Create(&skipped)
				stand.Must(t, done.Error)
				stand.Equal(t, "RowsAffected", done.RowsAffected, 0)
				stand.Equal(t, "the version", skipped.Version, 0)
				stand.MustBeUnread(t, db.Model(&skipped).Update("balance", 9).Error)
			})
		}
	}
}

// So are those whose first version is 0: they may be new.
func TestUpsert_leavesSkippedStructsUnreadAtZero(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		db := stand.Versioned(t, []any{&stand.RailsTask{}}, opts...)
		by := []clause.Column{{Name: "id"}}
		for name, create := range map[string]func(task *stand.RailsTask) error{
			"DoNothing": func(task *stand.RailsTask) error {
				return db.Clauses(clause.OnConflict{DoNothing: true}).Create(task).Error
			},
			"DoNothing by the key, a slice": func(task *stand.RailsTask) error {
				return db.Clauses(clause.OnConflict{Columns: by, DoNothing: true}).Create([]*stand.RailsTask{{State: "new"}, task}).Error
			},
			"DoNothing, preserved": func(task *stand.RailsTask) error {
				return db.Clauses(gormlock.PreserveVersion(), clause.OnConflict{DoNothing: true}).Create(task).Error
			},
			"DoNothing, ignored": func(task *stand.RailsTask) error {
				return db.Clauses(gormlock.IgnoreVersion(), clause.OnConflict{DoNothing: true}).Create(task).Error
			},
			"batches": func(task *stand.RailsTask) error {
				return db.Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches([]*stand.RailsTask{{State: "new"}, task}, 1).Error
			},
			"Where, ignored": func(task *stand.RailsTask) error {
				never := clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "false"}}}
				return db.Clauses(gormlock.IgnoreVersion(), clause.OnConflict{Columns: by, UpdateAll: true, Where: never}).Create(task).Error
			},
		} {
			old := stand.Made(t, db, stand.RailsTask{State: "old"})
			skipped := stand.RailsTask{ID: old.ID, State: "skipped"}
			stand.Must(t, create(&skipped))
			if err := db.Save(&skipped).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("%s, and Save: %v", name, err)
			}
			stand.Equal(t, name+", and Save", stand.Row[stand.RailsTask](t, db, old.ID).State, "old")
			stand.Must(t, db.First(&skipped).Error)
			stand.Must(t, db.Save(&skipped).Error)
		}
	})
}

// PreserveVersion leaves the version of the row, and the struct has it.
func TestUpsert_preservedLeavesRows(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		db := stand.Versioned(t, []any{&stand.Account{}}, opts...)
		for name, conflict := range map[string]clause.OnConflict{
			"all columns":  {UpdateAll: true},
			"some columns": {Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"note"})},
			"expressions":  {Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"balance": gorm.Expr("accounts.balance + 1")})},
		} {
			t.Run(name, func(t *testing.T) {
				old := stand.Made(t, db, stand.Account{Balance: 7, Note: "old"})
				stand.Must(t, db.Model(&old).Update("balance", 8).Error)
				both := []stand.Account{{ID: old.ID, Balance: 1, Note: "new"}, {Balance: 2, Note: "inserted"}}
				stand.Must(t, db.Clauses(conflict, gormlock.PreserveVersion()).Create(&both).Error)
				stand.Equal(t, "the version of the row", stand.Row[stand.Account](t, db, old.ID).Version, old.Version)
				for i := range both {
					stand.Equal(t, "the struct", both[i], stand.Row[stand.Account](t, db, both[i].ID))
					stand.Must(t, db.Model(&both[i]).Update("balance", 9).Error)
				}
			})
		}
	})
}
