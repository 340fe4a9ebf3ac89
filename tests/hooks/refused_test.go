package hooks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	bill struct {
		ID      int64
		Total   int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	audit struct {
		ID int64
	}
	// item keeps the total of its bill in hooks.
	item struct {
		ID      int64
		Amount  int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
		Bill    *bill `gorm:"-"`
		Before  bool  `gorm:"-"`
	}
	// plainItem has no version.
	plainItem struct {
		ID     int64
		Amount int64
		Bill   *bill `gorm:"-"`
		Before bool  `gorm:"-"`
	}
)

func (i *item) BeforeSave(tx *gorm.DB) error {
	if i.Bill == nil || !i.Before {
		return nil
	}
	return errors.Join(tx.Create(&audit{}).Error, tx.Model(i.Bill).Update("total", i.Amount).Error)
}

func (i *item) AfterSave(tx *gorm.DB) error {
	if i.Bill == nil || i.Before {
		return nil
	}
	return tx.Model(i.Bill).Update("total", i.Amount).Error
}

func (i *item) AfterDelete(tx *gorm.DB) error { return i.AfterSave(tx) }

func (i *plainItem) BeforeSave(tx *gorm.DB) error {
	if i.Bill == nil || !i.Before {
		return nil
	}
	return errors.Join(tx.Create(&audit{}).Error, tx.Model(i.Bill).Update("total", i.Amount).Error)
}

func (i *plainItem) AfterSave(tx *gorm.DB) error {
	if i.Bill == nil || i.Before {
		return nil
	}
	return tx.Model(i.Bill).Update("total", i.Amount).Error
}

func (i *plainItem) AfterDelete(tx *gorm.DB) error { return i.AfterSave(tx) }

// A hook whose own write is refused takes its statement with it: what that has stored is not committed, even if the program drops the
// error.
func TestHook_whoseWriteIsRefused(t *testing.T) {
	t.Parallel()
	for setting, open := range map[string]func(*testing.T) *gorm.DB{
		"as it comes": func(t *testing.T) *gorm.DB { return stand.Open(t) },
		"plain transactions": func(t *testing.T) *gorm.DB {
			return pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(gormlock.PlainTransactions())))
		},
	} {
		for name, write := range map[string]func(tx *gorm.DB, i item, p plainItem) error{
			"Save":         func(tx *gorm.DB, i item, _ plainItem) error { return tx.Save(&i).Error },
			"Updates":      func(tx *gorm.DB, i item, _ plainItem) error { return tx.Updates(&i).Error },
			"Update":       func(tx *gorm.DB, i item, _ plainItem) error { return tx.Model(&i).Update("amount", i.Amount).Error },
			"Save of some": func(tx *gorm.DB, i item, _ plainItem) error { return tx.Save([]*item{&i}).Error },
			"Delete":       func(tx *gorm.DB, i item, _ plainItem) error { return tx.Delete(&i).Error },
			"Create":       func(tx *gorm.DB, i item, _ plainItem) error { return tx.Create(&item{Amount: 8, Bill: i.Bill}).Error },
			"plain Save":   func(tx *gorm.DB, _ item, p plainItem) error { return tx.Save(&p).Error },
			"plain Create": func(tx *gorm.DB, _ item, p plainItem) error {
				return tx.Create(&plainItem{Amount: 8, Bill: p.Bill}).Error
			},
			"plain Delete": func(tx *gorm.DB, _ item, p plainItem) error { return tx.Delete(&p).Error },
			"before, Create": func(tx *gorm.DB, i item, _ plainItem) error {
				return tx.Create(&item{Amount: 8, Bill: i.Bill, Before: true}).Error
			},
			"before, Save": func(tx *gorm.DB, i item, _ plainItem) error {
				i.Before = true
				return tx.Save(&i).Error
			},
			"before, plain Create": func(tx *gorm.DB, _ item, p plainItem) error {
				return tx.Create(&plainItem{Amount: 8, Bill: p.Bill, Before: true}).Error
			},
			"before, plain Save": func(tx *gorm.DB, _ item, p plainItem) error {
				p.Before = true
				return tx.Save(&p).Error
			},
			"in a savepoint": func(tx *gorm.DB, i item, _ plainItem) (dropped error) {
				return errors.Join(tx.Transaction(func(tx *gorm.DB) error {
					stand.Must(t, tx.Create(&audit{}).Error)
					dropped = tx.Save(&i).Error
					return nil
				}), dropped)
			},
		} {
			t.Run(setting+"/"+name, func(t *testing.T) {
				t.Parallel()
				db := open(t)
				stand.Must(t, db.AutoMigrate(&bill{}, &item{}, &plainItem{}, &audit{}))
				b, i, p := bill{Total: 1}, item{Amount: 1}, plainItem{Amount: 1}
				stand.Must(t, db.Create(&b).Error)
				stand.Must(t, db.Create(&i).Error)
				stand.Must(t, db.Create(&p).Error)
				stand.Must(t, db.Model(&bill{}).Where("id = ?", b.ID).Update("total", 2).Error) // a rival
				i.Amount, i.Bill, p.Amount, p.Bill = 8, &b, 8, &b
				var dropped error
				err := db.Transaction(func(tx *gorm.DB) error {
					dropped = write(tx, i, p)
					return nil
				})
				if err == nil || !errors.Is(errors.Join(dropped, err), gormlock.ErrStale) {
					t.Errorf("the write says %v, and the commit %v", dropped, err)
				}
				var changed, stored int64
				stand.Must(t, db.Raw(`SELECT (SELECT count(*) FROM items WHERE amount = 8) + (SELECT count(*) FROM plain_items WHERE amount = 8) + (SELECT count(*) FROM audits)`).Scan(&changed).Error)
				stand.Must(t, db.Raw(`SELECT (SELECT count(*) FROM items) * 10 + (SELECT count(*) FROM plain_items)`).Scan(&stored).Error)
				stand.Equal(t, "changed", changed, 0)
				stand.Equal(t, "stored", stored, 11)
			})
		}
	}
}

// A program that goes back to a savepoint of its own goes on: of what was refused nothing is left.
func TestHook_whoseWriteIsRefused_inASavepointThatIsRolledBack(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.AutoMigrate(&bill{}, &item{}))
	b := bill{Total: 1}
	stand.Must(t, db.Create(&b).Error)
	stand.Must(t, db.Model(&bill{}).Where("id = ?", b.ID).Update("total", 2).Error) // a rival
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		for range 2 {
			err := tx.Transaction(func(tx *gorm.DB) error { return tx.Create(&item{Amount: 8, Bill: &b}).Error })
			if !errors.Is(err, gormlock.ErrStale) {
				t.Error(err)
			}
		}
		return tx.Create(&item{Amount: 3}).Error
	}))
	var amounts []int64
	stand.Must(t, db.Model(&item{}).Pluck("amount", &amounts).Error)
	stand.Equal(t, "amounts", len(amounts), 1)
}
