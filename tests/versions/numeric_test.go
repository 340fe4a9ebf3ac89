package versions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type numericAccount struct {
	ID      int64
	Balance int64
	Version int64 `gorm:"type:numeric(30);not null;default:1" gormlock:"version"`
}

type unsignedAccount struct {
	ID      int64
	Balance int64
	Version uint64 `gorm:"type:numeric(30);not null;default:1" gormlock:"version"`
}

// A column can hold larger versions than its field, and than an int64. No way to read or write such a row passes in silence.
func TestNumericVersions(t *testing.T) {
	t.Parallel()
	t.Run("int64", func(t *testing.T) {
		t.Parallel()
		numericVersions(t, func(id, v int64) *numericAccount { return &numericAccount{ID: id, Version: v} })
	})
	t.Run("uint64", func(t *testing.T) {
		t.Parallel()
		numericVersions(t, func(id, v int64) *unsignedAccount { return &unsignedAccount{ID: id, Version: uint64(v)} }) //nolint:gosec // small
	})
}

func numericVersions[T any](t *testing.T, row func(id, version int64) *T) {
	db := stand.Versioned(t, []any{new(T)})
	table := stand.TableOf(db, new(T))
	for _, large := range []string{"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551617"} {
		stand.MustDo(t, db.Exec("DELETE FROM "+table))
		stand.MustDo(t, db.Exec("INSERT INTO "+table+" (id, balance, version) VALUES (1, 50, "+large+")"))
		var read T
		err := db.First(&read, 1).Error
		mine := row(1, 1)
		if err == nil {
			mine = &read
		}
		for name, write := range map[string]func() error{
			"First, then Update": func() error { return db.Model(mine).Update("balance", 1).Error },
			"First, then Save":   func() error { return db.Save(mine).Error },
			"a slice":            func() error { return db.Save([]*T{mine}).Error },
			"an upsert":          func() error { return db.Clauses(stand.UpdateAll).Create(mine).Error },
			"of version 1":       func() error { return db.Model(row(1, 1)).Update("balance", 1).Error },
			"uint64":             func() error { return numericExpected(db, new(T), uint64(1<<63)) },
			"of no version": func() error {
				return numericExpected(db, new(T), uint64(1<<64-1))
			},
		} {
			written := write()
			var stored struct{ Balance, Same int64 }
			stand.MustDo(t, db.Raw("SELECT balance, CASE WHEN version = "+large+" THEN 1 ELSE 0 END AS same FROM "+table).Scan(&stored))
			t.Log(large, err, name, written, stored)
			if written == nil && stored.Same == 1 && stored.Balance != 50 || written == nil && stored.Balance == 50 {
				t.Errorf("%s: %s: %+v and no error", large, name, stored)
			}
			if written == nil && (err != nil || name == "of version 1") {
				t.Errorf("%s: %s: written though it was not read", large, name)
			}
			stand.MustDo(t, db.Exec("UPDATE "+table+" SET balance = 50, version = "+large))
		}
	}
	if err := db.Model(row(1, 1)).Update("balance", 1).Error; !errors.Is(err, gormlock.ErrStale) {
		t.Error(err)
	}
}

func numericExpected(db *gorm.DB, of, version any) error {
	if err := db.Clauses(gormlock.ExpectVersion(version)).Model(of).Where("id = 1").Update("balance", 1).Error; err != nil {
		return err
	}
	return nil
}
