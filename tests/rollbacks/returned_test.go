package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// qtyOf is a form of a line. It has no tag.
type qtyOf struct {
	ID, OrderID int64
	Qty         int
	Version     int64
}

func (qtyOf) TableName() string { return "lined_lines" }

// returned are bulk statements that return rows. Each returns a write by what came back.
var returned = map[string]func(tx *gorm.DB) (write func(db *gorm.DB) error, err error){
	"Update into a slice": func(tx *gorm.DB) (func(*gorm.DB) error, error) {
		var rows []stand.LinedLine
		err := tx.Model(&rows).Where("id = 1").Update("qty", 8).Error
		return saving(first(rows)), err
	},
	"Update of some columns into a slice": func(tx *gorm.DB) (func(*gorm.DB) error, error) {
		var rows []stand.LinedLine
		err := tx.Clauses(clause.Returning{Columns: []clause.Column{{Name: "version"}}}).Model(&rows).Where("id = 1").Updates(map[string]any{"qty": 8}).Error
		return saving(first(rows)), err
	},
	"Update into pointers": func(tx *gorm.DB) (func(*gorm.DB) error, error) {
		var rows []*stand.LinedLine
		err := tx.Model(&rows).Where("id = 1").Updates(stand.LinedLine{Qty: 8}).Error
		return saving(*first(rows)), err
	},
	"Update into one": func(tx *gorm.DB) (func(*gorm.DB) error, error) {
		var row stand.LinedLine
		err := tx.Model(&row).Where("id = 1").Update("qty", 8).Error
		return func(db *gorm.DB) error {
			if row.ID == 0 {
				return gormlock.ErrVersionMissing // it is as empty as it was: a Save would insert it
			}
			return saving(&row)(db)
		}, err
	},
	"Delete into a slice": func(tx *gorm.DB) (func(*gorm.DB) error, error) {
		var rows []stand.LinedLine
		err := tx.Where("id = 1").Delete(&rows).Error
		return saving(first(rows)), err
	},
	"Update of forms": func(tx *gorm.DB) (func(*gorm.DB) error, error) {
		var rows []qtyOf
		err := tx.Model(&rows).Where("id = 1").Update("qty", 8).Error
		return func(db *gorm.DB) error { return db.Model(&stand.LinedLine{ID: 1}).Updates(first(rows)).Error }, err
	},
}

// V1, G31: a rollback reaches what a bulk statement returned, and so does the end of a transaction that nobody sees.
func TestRollback_ofWhateverAWriteReturns(t *testing.T) {
	t.Parallel()
	stand.Beside(t, undone(), func(t *testing.T, open func(t *testing.T) (*gorm.DB, stand.Transacting)) {
		db, within := open(t)
		withParcel(t, db)
		for name, write := range returned {
			var again func(db *gorm.DB) error
			if err := within(func(tx *gorm.DB) (err error) {
				stand.MustDo(t, tx.Exec(move))
				stand.MustDo(t, tx.Find(&[]stand.LinedLine{})) // a form is compared with models that the plugin has met
				again, err = write(tx.Clauses(clause.Returning{}))
				stand.Must(t, err)
				return errUndo
			}); !errors.Is(err, errUndo) {
				t.Fatal(name, err)
			}
			mustKeepRivals(t, db, name, again)
		}
	})
}

// What a bulk statement returned can be saved once it is committed.
func TestCommit_ofWhateverAWriteReturns(t *testing.T) {
	t.Parallel()
	db := stand.OpenLined(t, gormlock.New())
	withParcel(t, db)
	for name, write := range returned {
		if name == "Delete into a slice" {
			continue
		}
		var again func(db *gorm.DB) error
		stand.Must(t, db.Transaction(func(tx *gorm.DB) (err error) {
			again, err = write(tx.Clauses(clause.Returning{}))
			return err
		}))
		if err := again(db); err != nil {
			t.Error(name, err)
		}
	}
}
