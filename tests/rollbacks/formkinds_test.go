package rollbacks_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// kindOf is a form of an account whose version is of any type.
type kindOf[V any] struct {
	ID      int64
	Balance int64
	Version V
}

func (k *kindOf[V]) read(tx *gorm.DB) error  { return tx.Model(&stand.Account{}).First(k, 1).Error }
func (k *kindOf[V]) write(db *gorm.DB) error { return db.Model(&stand.Account{ID: 1}).Updates(k).Error }
func (k *kindOf[V]) expect(db *gorm.DB) error {
	return db.Model(&stand.Account{ID: 1}).Clauses(gormlock.ExpectVersion(k.Version)).Update("balance", 7).Error
}

type ownNumber int32

// A form holds the version in a type of its own. After a rollback it holds that of no row, or its next write is an error at any rate.
func TestRollback_ofFormsOfAnyKind(t *testing.T) {
	t.Parallel()
	for _, form := range []interface {
		read(tx *gorm.DB) error
		write(db *gorm.DB) error
		expect(db *gorm.DB) error
	}{
		&kindOf[int64]{}, &kindOf[*int64]{}, &kindOf[uint8]{}, &kindOf[ownNumber]{}, &kindOf[float64]{}, &kindOf[float32]{}, &kindOf[*float64]{}, &kindOf[string]{},
		&kindOf[*string]{}, &kindOf[json.Number]{}, &kindOf[[]byte]{}, &kindOf[sql.NullInt64]{}, &kindOf[sql.Null[int32]]{}, &kindOf[sql.NullFloat64]{},
		&kindOf[sql.NullString]{}, &kindOf[sql.RawBytes]{},
	} {
		t.Run(fmt.Sprintf("%T", form), func(t *testing.T) {
			db, _ := stand.Stored(t, stand.Account{ID: 1, Balance: 100})
			err := db.Transaction(func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Model(&stand.Account{ID: 1, Version: 1}).Update("balance", 90))
				return errors.Join(form.read(tx), errUndo)
			})
			if !errors.Is(err, errUndo) || gormlock.IsRetryable(err) {
				t.Fatal(err)
			}
			stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 50, version = version + 1"))
			for what, write := range map[string]func(*gorm.DB) error{"written": form.write, "expected": form.expect} {
				if err := write(db); err == nil {
					t.Errorf("%+v was %s", form, what)
				}
			}
			stand.Equal(t, "balance", stand.Row[stand.Account](t, db, 1).Balance, 50)
		})
	}
}
