package once_test

import (
	"math/big"
	"reflect"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// hidden has nothing that JSON keeps.
type hidden struct{ id int }

func (h hidden) text() int { return h.id }

// named is embedded unexported, and its fields are kept all the same.
type named struct{ Name string }

type kept struct {
	named
	Of     hidden
	At     time.Time
	Amount *big.Int
	note   string
}

func returned[T any](t *testing.T, db *gorm.DB, key string, value T) {
	t.Helper()
	for _, when := range []string{"first", "again"} {
		err := db.Transaction(func(tx *gorm.DB) error {
			got, err := gormlock.Once(tx, key, func(*gorm.DB) (T, error) { return value, nil })
			if err == nil && !reflect.DeepEqual(got, value) {
				t.Errorf("%s, %s: %+v, want %+v", key, when, got, value)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s, %s: %v", key, when, err)
		}
	}
}

// What JSON keeps something of is stored, whatever else it has.
func TestOnce_resultsThatAreKept(t *testing.T) {
	t.Parallel()
	db := open(t)
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	returned(t, db, "embedded", kept{named: named{"n"}, At: at, Amount: big.NewInt(7)})
	returned(t, db, "pointer", &kept{named: named{"n"}, At: at})
	returned(t, db, "list", []kept{{named: named{"a"}}, {}})
	returned(t, db, "nothing", struct{}{})
	returned(t, db, "nil", (*hidden)(nil))
	returned(t, db, "none of them", []hidden{})
	returned(t, db, "time", at)
	returned(t, db, "number", big.NewInt(7))
	returned(t, db, "bytes", []byte{1, 0, 2})
	returned[any](t, db, "any", map[string]any{"a": []any{1.5, nil}})
	_, _ = hidden{}.text(), kept{}.note
}
