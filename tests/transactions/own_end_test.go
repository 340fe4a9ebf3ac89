package transactions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// What a callback of the application says after the commit takes nothing back.
func TestOwnCommit_anErrorBehindIt(t *testing.T) {
	t.Parallel()
	errAfter := errors.New("the cache is away")
	for setting, opts := range map[string][]gormlock.Option{"as it comes": nil, "plain transactions": {gormlock.PlainTransactions()}, "db.Connection": nil} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			db := pgtest.Open(t, pgtest.Schema())
			fails := false
			after := func(tx *gorm.DB) {
				if fails && tx.Statement.Table == "doubteds" { // not for its children
					_ = tx.AddError(errAfter)
				}
			}
			stand.Must(t, db.Callback().Create().After("gorm:commit_or_rollback_transaction").Register("test:after", after))
			stand.Must(t, db.Callback().Update().After("gorm:commit_or_rollback_transaction").Register("test:after", after))
			plugin := gormlock.New(opts...)
			t.Cleanup(func() { _ = plugin.Close() })
			stand.Must(t, db.Use(plugin))
			stand.Must(t, db.AutoMigrate(&doubted{}, &doubtedLine{}, &doubtedNote{}))
			a := doubted{Amount: 1, Lines: []doubtedLine{{}}, Notes: []doubtedNote{{}}}
			run := func(write func(db *gorm.DB) error) (err error) {
				fails = true
				defer func() { fails = false }()
				if setting == "db.Connection" {
					stand.Must(t, db.Connection(func(c *gorm.DB) error { err = write(c); return nil }))
					return err
				}
				return write(db)
			}
			if err := run(func(db *gorm.DB) error { return db.Create(&a).Error }); !errors.Is(err, errAfter) {
				t.Fatal(err)
			}
			if a.ID == 0 || a.Version != 1 || a.Lines[0].DoubtedID != a.ID || a.Notes[0].DoubtedID != a.ID {
				t.Errorf("taken back: %+v", a)
			}
			stand.Must(t, db.Save(&a).Error)
			if err := run(func(db *gorm.DB) error { return db.Model(&a).Update("amount", 2).Error }); !errors.Is(err, errAfter) {
				t.Fatal(err)
			}
			stand.Must(t, db.Save(&a).Error)
			var n int64
			if stand.Must(t, db.Model(&doubted{}).Count(&n).Error); n != 1 || a.Lines[0].DoubtedID != a.ID || a.Notes[0].DoubtedID != a.ID {
				t.Errorf("%d rows, %+v", n, a)
			}
		})
	}
}
