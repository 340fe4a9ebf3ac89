package rows_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestLockRowsByKeysOfAnotherSpelling: a key is found as the server understands it, however the caller writes it.
func TestLockRowsByKeysOfAnotherSpelling(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	other := time.FixedZone("other", 7200)
	keySpelling(t, db, "char(5)", "ab", "ab   ")
	keySpelling(t, db, "uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
	keySpelling(t, db, "numeric(10,2)", "1.5", "1.50")
	keySpelling(t, db, "interval", "1 hour", "01:00:00")
	keySpelling(t, db, "jsonb", json.RawMessage(`{"a":1}`), json.RawMessage(`{"a": 1}`))
	keySpelling(t, db, "date", time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC))
	keySpelling(t, db, "timestamp", time.Date(2020, 1, 2, 3, 4, 5, 0, other), time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC))
	keySpelling(t, db, "timestamptz", time.Date(2020, 1, 2, 3, 4, 5, 0, other), time.Date(2020, 1, 2, 1, 4, 5, 0, time.UTC))
	if db.Exec("CREATE EXTENSION IF NOT EXISTS citext").Error == nil { // it is not with every server
		keySpelling(t, db, "citext", "aB", "Ab")
	}
}

func keySpelling[K any](t *testing.T, db *gorm.DB, columnType string, given, stored K) {
	t.Helper()
	type spelled struct {
		ID K `gorm:"primaryKey"`
		N  int
	}
	t.Run(columnType, func(t *testing.T) {
		table := "spelled_" + strings.NewReplacer("(", "_", ")", "", ",", "_").Replace(columnType)
		stand.MustDo(t, db.Exec("CREATE TABLE "+table+" (id "+columnType+" PRIMARY KEY, n int)"))
		stand.MustDo(t, db.Table(table).Create(&spelled{ID: stored, N: 7}))
		stand.InTx(t, db, func(tx *gorm.DB) {
			tx = tx.Table(table).Session(&gorm.Session{})
			one := spelled{ID: given}
			stand.Must(t, gormlock.LockRow(tx, &one))
			stand.Equal(t, "LockRow reads", one.N, 7)
			rows := []spelled{{ID: stored}, {ID: given}, {ID: given}}
			stand.Must(t, gormlock.LockRows(tx, &rows))
			for _, row := range rows {
				stand.Equal(t, "LockRows reads", row.N, 7)
				stand.Equal(t, "the key", fmt.Sprint(row.ID), fmt.Sprint(rows[0].ID))
			}
			only := []*spelled{{ID: given}}
			stand.Must(t, gormlock.LockRows(tx, &only))
			stand.Equal(t, "LockRows reads", only[0].N, 7)
		})
	})
}

// TestLockRowsByTimesOfTheClock: without a zone in the column, one moment in two zones is two keys.
func TestLockRowsByTimesOfTheClock(t *testing.T) {
	t.Parallel()
	type hour struct {
		At time.Time `gorm:"primaryKey;type:timestamp"`
		N  int
	}
	db := stand.Versioned(t, []any{&hour{}})
	eight := time.Date(2020, 1, 2, 8, 0, 0, 0, time.UTC)
	stand.MustDo(t, db.Create(&[]hour{{At: eight, N: 8}, {At: eight.Add(2 * time.Hour), N: 10}}))
	stand.InTx(t, db, func(tx *gorm.DB) {
		ten := eight.In(time.FixedZone("other", 7200))
		rows := []hour{{At: ten}, {At: eight}}
		stand.Must(t, gormlock.LockRows(tx, &rows))
		stand.Equal(t, "the first", rows[0].N, 10)
		stand.Equal(t, "the second", rows[1].N, 8)
		one := hour{At: ten}
		stand.Must(t, gormlock.LockRow(tx, &one))
		stand.Equal(t, "LockRow reads", one.N, 10)
	})
}

// TestLockRowsNamesWhatIsMissing: once, in the table that tx names.
func TestLockRowsNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	db := seats(t)
	stand.MustDo(t, db.Exec("CREATE TABLE chairs AS SELECT * FROM seats"))
	stand.InTx(t, db, func(tx *gorm.DB) {
		err := gormlock.LockRows(tx.Table("chairs"), &[]seat{{ID: 1}, {ID: 8}, {ID: 9}, {ID: 8}})
		if !errors.Is(err, gorm.ErrRecordNotFound) || err.Error() != "gormlock: lock chairs id=8; chairs id=9: record not found" {
			t.Error(err)
		}
		err = gormlock.LockRow(tx.Table("chairs"), &seat{ID: 8})
		if !errors.Is(err, gorm.ErrRecordNotFound) || err.Error() != "gormlock: lock chairs id=8: record not found" {
			t.Error(err)
		}
	})
}

// TestLockRowsOfManyElements: the server takes 65535 parameters, and a row that is named often is one.
func TestLockRowsOfManyElements(t *testing.T) {
	t.Parallel()
	stand.InTx(t, seats(t), func(tx *gorm.DB) {
		tx, recorder := stand.Recorded(tx)
		rows := make([]seat, 70000)
		for i := range rows {
			rows[i].ID = int64(1 + i%4)
		}
		stand.Must(t, gormlock.LockRows(tx, &rows))
		stand.Equal(t, "the hall of the last", rows[len(rows)-1].HallID, 1)
		stand.Equal(t, "statements", len(recorder.Seen()), 1)
	})
}

// A lock that is asked for beside the rows is taken, also if there are none.
func TestLockRows_ofNoneTakesTheOtherLock(t *testing.T) {
	t.Parallel()
	db := seats(t)
	key := lockkey.Of("rows", t.Name())
	for name, with := range map[string]func(tx *gorm.DB) *gorm.DB{
		"a scope":  func(tx *gorm.DB) *gorm.DB { return tx.Scopes(gormlock.WithXactLock(key)) },
		"a clause": func(tx *gorm.DB) *gorm.DB { return tx.Clauses(gormlock.XactLock(key)) },
	} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			rows := []seat{}
			stand.Must(t, gormlock.LockRows(with(tx), &rows))
			stand.Equal(t, name+": rows", len(rows), 0)
			rival := db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{key}, gormlock.Try()) })
			if !errors.Is(rival, gormlock.ErrNotAcquired) {
				t.Errorf("%s: %v", name, rival)
			}
		})
	}
}

// manyRow has a key that is an array of the statement where there are many, and manyText one that is a parameter each.
type manyRow struct {
	ID int64
	N  int64
}

type manyText struct {
	ID string
	N  int64
}

// More rows than a statement has parameters are locked in the order of their keys, in one statement, or an error names the cure.
func TestLockRows_ofMoreThanAStatementHasParameters(t *testing.T) {
	t.Parallel()
	const n = 70_000
	db := stand.Versioned(t, []any{&manyRow{}, &manyText{}})
	stand.MustDo(t, db.Exec("INSERT INTO many_rows (id, n) SELECT i, i FROM generate_series(1, ?::bigint) i", n))
	rows, texts := make([]manyRow, n), make([]manyText, n)
	for i := range n {
		rows[i].ID, texts[i].ID = n-int64(i), strconv.Itoa(i)
	}
	stand.InTx(t, db, func(tx *gorm.DB) {
		tx, recorder := stand.Recorded(tx)
		stand.Must(t, gormlock.LockRows(tx, &rows))
		if seen := recorder.Seen(); len(seen) != 1 || !strings.Contains(seen[0], `ORDER BY "many_rows"."id" FOR UPDATE`) {
			t.Errorf("sent %d statements", len(seen))
		}
		if rows[0].N != n || rows[n-1].N != 1 {
			t.Error(rows[0], rows[n-1])
		}
		if err := gormlock.LockRows(tx, &texts); !errors.Is(err, gormlock.ErrOption) || !strings.Contains(err.Error(), "sort the slice by its key, and lock its parts one after the other") {
			t.Error(err)
		}
	})
}
