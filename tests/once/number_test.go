package once_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

const odd = 9007199254740993 // the first integer that no float64 holds

// openField has a field of any type, in which JSON reads a number as a float64.
type openField struct{ ID any }

type quotedField struct {
	ID int64 `json:",string"`
}

func refusesNumber[T any](t *testing.T, db *gorm.DB, key string, value T) {
	t.Helper()
	for range 2 {
		err := db.Transaction(func(tx *gorm.DB) error {
			_, err := gormlock.Once(tx, key, func(tx *gorm.DB) (T, error) { return value, tx.Create(&Charge{Key: key}).Error })
			if err == nil || !strings.Contains(err.Error(), "would be read as ") || !strings.Contains(err.Error(), "return it as text") {
				t.Errorf("%s: %v", key, err)
			}
			return nil // the transaction goes on
		})
		stand.Must(t, err)
	}
}

// A number that comes back as another one is an error, and the effect is undone.
func TestOnce_numbersThatJSONRounds(t *testing.T) {
	t.Parallel()
	db := open(t)
	refusesNumber(t, db, "a map", map[string]any{"id": int64(odd)})
	refusesNumber(t, db, "a field", openField{uint64(1<<64 - 1)})
	refusesNumber(t, db, "a struct in a field", &openField{[]openField{{ID: &struct{ N int64 }{odd}}}})
	refusesNumber[any](t, db, "alone", int64(odd))
	refusesNumber[any](t, db, "the key of a struct", stand.Account{ID: odd})
	refusesNumber(t, db, "with the digits of its float64", map[string]any{"id": int64(1152921504606847000)})
	refusesNumber(t, db, "a number of JSON", map[string]any{"id": json.Number("9007199254740993")})
	refusesNumber(t, db, "a fraction", []any{json.RawMessage(`{"n": 0.12345678901234567890}`)})
	refusesNumber(t, db, "big", map[string]any{"n": new(big.Int).Lsh(big.NewInt(odd), 70)})
	refusesNumber(t, db, "beside a text", openField{[]any{quotedField{ID: odd}, int64(odd)}})
	var n int64
	stand.Must(t, db.Model(&Charge{}).Count(&n).Error)
	stand.Equal(t, "effects", n, 0)

	returned(t, db, "typed", []stand.Account{{ID: odd}})
	returned(t, db, "typed in a map", map[string]int64{"id": odd})
	returned(t, db, "typed and unsigned", uint64(1<<64-1))
	returned(t, db, "as text", quotedField{ID: odd})
	returned(t, db, "a number with its text", map[string]json.Number{"n": "0.12345678901234567890"})
	returned(t, db, "raw", json.RawMessage(`{"n":1e-999999999,"m":9007199254740993,"o":1e999999999}`))
	returned(t, db, "floats", map[string]any{"a": 0.1, "b": 1.0 / 3, "c": float64(1 << 60), "d": 1e300, "e": 1.7e18 + 4096, "f": 5e-324})
}

// What was stored by another type is read whole, or it is an error.
func TestOnce_numbersOfAnEarlierType(t *testing.T) {
	t.Parallel()
	db := open(t)
	returned(t, db, "id", map[string]int64{"id": odd})
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		for name, again := range map[string]func() error{
			"any": func() error {
				return stand.ErrorOf(gormlock.Once(tx, "id", func(*gorm.DB) (m map[string]any, _ error) { return m, nil }))
			},
			"float64": func() error {
				return stand.ErrorOf(gormlock.Once(tx, "id", func(*gorm.DB) (m map[string]float64, _ error) { return m, nil }))
			},
			"float32": func() error {
				return stand.ErrorOf(gormlock.Once(tx, "id", func(*gorm.DB) (m struct{ ID float32 }, _ error) { return m, nil }))
			},
		} {
			if err := again(); err == nil || !strings.Contains(err.Error(), fmt.Sprint(odd)+" of the result would be read as ") {
				t.Errorf("%s: %v", name, err)
			}
		}
		m, err := gormlock.Once(tx, "id", func(*gorm.DB) (m map[string]json.Number, _ error) { return m, nil })
		if err == nil && m["id"].String() != fmt.Sprint(odd) {
			t.Error(m)
		}
		return err
	}))
}
