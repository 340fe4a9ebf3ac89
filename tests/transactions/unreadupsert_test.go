package transactions_test

import (
	"database/sql"
	"errors"
	"reflect"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A struct that was left unread is not taken for a new one: an upsert of it is refused like any other write, and names the cure.
func TestUpsert_ofAStructThatWasLeftUnread(t *testing.T) {
	t.Parallel()
	stand.Beside(t, stand.Unseen, func(t *testing.T, open func(t *testing.T) (*gorm.DB, stand.Transacting)) {
		db, within := open(t)
		some := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"balance"})}
		for name, conflict := range map[string]clause.OnConflict{"all columns": {UpdateAll: true}, "some columns": some} {
			for _, undo := range []error{errUndo, nil} {
				stand.MustDo(t, db.Exec("DELETE FROM accounts"))
				written, created, other := stand.Account{ID: 1}, stand.Account{ID: 2}, stand.Account{ID: 3}
				stand.MustDo(t, db.Create(&written))
				stand.MustDo(t, db.Create(&other))
				if err := within(func(tx *gorm.DB) error {
					stand.MustDo(t, tx.Model(&written).Update("balance", 2))
					stand.MustDo(t, tx.Create(&created))
					return undo
				}); !errors.Is(err, undo) {
					t.Fatal(err)
				}
				stand.MustDo(t, db.Exec("INSERT INTO accounts (id, balance, note, version) VALUES (2, 0, '', 1) ON CONFLICT DO NOTHING"))
				stand.MustDo(t, db.Exec("UPDATE accounts SET version = version + 1, balance = 55")) // a rival's
				for _, mine := range []*stand.Account{&written, &created} {
					mine.Balance = 1
					for how, err := range map[string]error{
						"alone":            db.Clauses(conflict).Create(mine).Error,
						"beside another":   db.Clauses(conflict).Create([]*stand.Account{mine, {ID: 4}}).Error,
						"without hooks":    db.Session(&gorm.Session{SkipHooks: true}).Clauses(conflict).Create(mine).Error,
						"saved in a slice": db.Save([]*stand.Account{mine}).Error,
					} {
						if !errors.Is(err, gormlock.ErrVersionMissing) {
							t.Errorf("%s, %s, %v: %+v was stored: %v", name, how, undo, *mine, err)
						}
					}
					stand.Equal(t, "the row", stand.Row[stand.Account](t, db, mine.ID).Balance, 55)
				}
				stand.MustDo(t, db.Clauses(gormlock.IgnoreVersion(), conflict).Create(&written))
				stand.Equal(t, "the row", stand.Row[stand.Account](t, db, 1).Balance, 1)
			}
		}
	})
}

// After a rollback as well: what a transaction has read behind its own write is not new.
func TestUpsert_ofAStructThatARollbackLeftUnread(t *testing.T) {
	t.Parallel()
	t.Run("integer", upsertsUnread[unreadNumber])
	t.Run("unsigned", upsertsUnread[unreadUnsigned])
	t.Run("pointer", upsertsUnread[unreadPointer])
	t.Run("nullable", upsertsUnread[unreadNullable])
	t.Run("time", upsertsUnread[unreadTime])
	t.Run("rails", upsertsUnread[unreadRails])
	t.Run("hibernate", upsertsUnread[unreadHibernate])
}

type (
	unreadBase   struct{ ID, Amount int64 }
	unreadNumber struct {
		Base    unreadBase `gorm:"embedded"`
		Version int64      `gormlock:"version"`
	}
	unreadUnsigned struct {
		Base    unreadBase `gorm:"embedded"`
		Version uint16     `gormlock:"version"`
	}
	unreadPointer struct {
		Base    unreadBase `gorm:"embedded"`
		Version *int32     `gormlock:"version"`
	}
	unreadNullable struct {
		Base    unreadBase    `gorm:"embedded"`
		Version sql.NullInt64 `gormlock:"version"`
	}
	unreadTime struct {
		Base    unreadBase `gorm:"embedded"`
		Version time.Time  `gorm:"type:timestamp" gormlock:"version"`
	}
	unreadRails struct {
		Base        unreadBase `gorm:"embedded"`
		LockVersion int64      `gormlock:"version,rails"`
	}
	unreadHibernate struct {
		Base    unreadBase `gorm:"embedded"`
		Version int64      `gormlock:"version,hibernate"`
	}
)

func upsertsUnread[T any](t *testing.T) {
	t.Helper()
	t.Parallel()
	db, row := stand.Versioned(t, []any{new(T)}), new(T)
	table := db.NamingStrategy.TableName(reflect.TypeFor[T]().Name())
	base := func(of *T) *unreadBase {
		return (*unreadBase)(reflect.ValueOf(of).Elem().Field(0).Addr().UnsafePointer())
	}
	amount := func() (held int64) {
		stand.Must(t, db.Table(table).Where("id = 1").Pluck("amount", &held).Error)
		return held
	}
	base(row).ID = 1
	stand.MustDo(t, db.Create(row))
	for _, conflict := range []clause.OnConflict{
		{UpdateAll: true},
		{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"amount"})},
	} {
		copied, list := new(T), []T{}
		_ = db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Model(new(T)).Where("id = 1").Update("amount", 7))
			stand.MustDo(t, tx.Take(copied))
			stand.MustDo(t, tx.Find(&list))
			byValue, err := gorm.G[T](tx).Take(t.Context())
			stand.Must(t, err)
			list = append(list, byValue)
			return errUndo
		})
		for _, mine := range []*T{copied, &list[0], &list[1]} {
			base(mine).Amount = 5
			stand.MustBeUnread(t, db.Clauses(conflict).Create(mine).Error)
			stand.MustBeUnread(t, db.Clauses(conflict).Create(&[]T{*mine}).Error)
			stand.MustBeUnread(t, gorm.G[T](db, conflict).Create(t.Context(), mine))
			stand.MustBeUnread(t, db.Save(mine).Error)
			stand.Equal(t, "the row's amount", amount(), 0)
		}
	}
}
