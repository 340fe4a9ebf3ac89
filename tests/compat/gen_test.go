package compat_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/compat/internal/model"
	"github.com/gormlock/gormlock/tests/compat/internal/query"
)

// TestGen: the code that gorm.io/gen generates takes gormlock's clauses, and its writes are checked.
func TestGen(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	if err := db.AutoMigrate(&model.Account{}); err != nil {
		t.Fatal(err)
	}
	q := query.Use(db)
	a := q.Account
	made := model.Account{Name: "a"}
	if err := a.WithContext(t.Context()).Create(&made); err != nil || made.Version != 1 {
		t.Fatalf("%+v %v", made, err)
	}
	t.Run("locks", func(t *testing.T) {
		key, another := pgtest.Key(t), pgtest.Key(t)
		err := q.Transaction(func(tx *query.Query) error {
			a := tx.Account
			if _, err := a.WithContext(t.Context()).Clauses(gormlock.XactLock(key)).Where(a.ID.Eq(made.ID)).First(); err != nil {
				return err
			}
			got, err := a.WithContext(t.Context()).Clauses(gormlock.RowLock(gormlock.ForUpdate, gormlock.Skip())).Find()
			if err != nil || len(got) != 1 || !pgtest.Held(t, key) {
				t.Errorf("%d rows, held %t, %v", len(got), pgtest.Held(t, key), err)
			}
			_, err = a.WithContext(t.Context()).Clauses(gormlock.XactLock(another)).Where(a.ID.Eq(-1)).Update(a.Balance, 1)
			if err != nil || !pgtest.Held(t, another) {
				t.Errorf("held %t, %v", pgtest.Held(t, another), err)
			}
			return nil
		})
		if err != nil || pgtest.Held(t, key) {
			t.Errorf("held %t after the transaction, %v", pgtest.Held(t, key), err)
		}
		_, err = a.WithContext(t.Context()).Clauses(gormlock.XactLock(key)).First()
		if !errors.Is(err, gormlock.ErrNoTransaction) {
			t.Errorf("outside of a transaction: %v", err)
		}
	})
	t.Run("a query over Transaction", func(t *testing.T) {
		key := pgtest.Key(t)
		err := gormlock.Transaction(db, func(tx *gorm.DB) error {
			if !pgtest.Held(t, key) {
				t.Error("not held")
			}
			_, err := query.Use(tx).Account.WithContext(t.Context()).Find()
			return err
		}, gormlock.Locking(key))
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("versions", func(t *testing.T) {
		stale := made
		made.Balance = 5
		if err := a.WithContext(t.Context()).Save(&made); err != nil || made.Version != 2 {
			t.Errorf("%+v %v", made, err)
		}
		if err := a.WithContext(t.Context()).Save(&stale); !errors.Is(err, gormlock.ErrStale) {
			t.Errorf("a stale Save: %v", err)
		}
		key := a.ID.Eq(made.ID)
		for name, write := range map[string]func() (int64, error){
			"UpdateSimple": func() (int64, error) {
				info, err := a.WithContext(t.Context()).Where(key).UpdateSimple(a.Balance.Add(1))
				return info.RowsAffected, err
			},
			"Update": func() (int64, error) {
				info, err := a.WithContext(t.Context()).Where(key).Update(a.Name, "b")
				return info.RowsAffected, err
			},
			"Updates": func() (int64, error) {
				info, err := a.WithContext(t.Context()).Where(key).Updates(map[string]any{"name": "c"})
				return info.RowsAffected, err
			},
		} {
			before, err := a.WithContext(t.Context()).Where(key).First()
			if err != nil {
				t.Fatal(err)
			}
			if n, err := write(); err != nil || n != 1 {
				t.Errorf("%s: %d rows, %v", name, n, err)
			}
			after, err := a.WithContext(t.Context()).Where(key).First()
			if err != nil || after.Version != before.Version+1 {
				t.Errorf("%s: version %d, before %d, %v", name, after.Version, before.Version, err)
			}
		}
		info, err := a.WithContext(t.Context()).Where(key).Clauses(gormlock.ExpectVersion(1)).UpdateSimple(a.Balance.Add(100))
		if !errors.Is(err, gormlock.ErrStale) || info.RowsAffected != 0 {
			t.Errorf("with the version of long ago: %+v, %v", info, err)
		}
		if _, err := a.WithContext(t.Context()).Delete(&stale); !errors.Is(err, gormlock.ErrStale) {
			t.Errorf("a stale Delete: %v", err)
		}
	})
}
