package mariadb_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type find func(tx *gorm.DB, strength gormlock.Strength, opts ...gormlock.RowLockOption) ([]plain, error)

// doors are the ways to ask for a row lock.
var doors = map[string]find{
	"Scopes": func(tx *gorm.DB, strength gormlock.Strength, opts ...gormlock.RowLockOption) (rows []plain, err error) {
		err = tx.Scopes(gormlock.WithRowLock(strength, opts...)).Order("id").Limit(2).Find(&rows).Error
		return rows, err
	},
	"Clauses": func(tx *gorm.DB, strength gormlock.Strength, opts ...gormlock.RowLockOption) (rows []plain, err error) {
		err = tx.Clauses(gormlock.RowLock(strength, opts...)).Order("id").Limit(2).Find(&rows).Error
		return rows, err
	},
	"gorm.G": func(tx *gorm.DB, strength gormlock.Strength, opts ...gormlock.RowLockOption) ([]plain, error) {
		return gorm.G[plain](tx, gormlock.RowLock(strength, opts...)).Order("id").Limit(2).Find(context.Background())
	},
}

// What a row lock does behind each door, for each strength and each wait. ForNoKeyUpdate is FOR UPDATE, and ForKeyShare is
// LOCK IN SHARE MODE: the stronger ones, for MariaDB knows no others.
func TestRowLock(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]func(*gorm.Config){"plain": func(*gorm.Config) {}, "PrepareStmt": func(c *gorm.Config) { c.PrepareStmt = true }} {
		for door, find := range doors {
			t.Run(name+"/"+door, func(t *testing.T) {
				t.Parallel()
				db := mariaserver.Open(t, []any{&plain{}}, mariaserver.Config(mode))
				stand.Must(t, db.Create([]plain{{ID: 1}, {ID: 2}, {ID: 3}}).Error)
				rowLock(t, db, find)
			})
		}
	}
}

func rowLock(t *testing.T, db *gorm.DB, find find) {
	all := []gormlock.Strength{gormlock.ForUpdate, gormlock.ForNoKeyUpdate, gormlock.ForShare, gormlock.ForKeyShare}
	shares := func(s gormlock.Strength) bool { return s >= gormlock.ForShare }
	for _, held := range all {
		holder := db.Begin()
		_, err := find(holder, held)
		stand.Must(t, err)
		for _, asked := range all {
			tx := db.Begin()
			_, err := find(tx, asked, gormlock.Try())
			if shares(held) && shares(asked) {
				stand.Must(t, err)
			} else if !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Errorf("%v while %v is held: %v", asked, held, err)
			}
			stand.Must(t, tx.Exec("INSERT INTO plains (id) VALUES (100)").Error) // the transaction is as usable as before
			stand.Must(t, tx.Rollback().Error)
		}
		stand.Must(t, holder.Rollback().Error)
	}

	holder := db.Begin()
	stand.Must(t, gormlock.LockRow(holder, &plain{ID: 1}))
	tx := db.Begin()
	rows, err := find(tx, gormlock.ForUpdate, gormlock.Skip())
	stand.Must(t, err)
	if len(rows) != 2 || rows[0].ID != 2 || rows[1].ID != 3 {
		t.Error("Skip read", rows)
	}
	took := within(t, 5*time.Second, func() { _, err = find(tx, gormlock.ForUpdate, gormlock.Timeout(300*time.Millisecond)) })
	if !errors.Is(err, gormlock.ErrLockTimeout) || took < 300*time.Millisecond {
		t.Errorf("Timeout: %v after %s", err, took)
	}
	var wait int
	stand.Must(t, tx.Raw("SELECT @@innodb_lock_wait_timeout").Scan(&wait).Error)
	stand.Equal(t, "the session's timeout", wait, 50)
	done := make(chan error, 1)
	go func() { _, err := find(tx, gormlock.ForUpdate); done <- err }()
	stillWaits(t, done)
	stand.Must(t, holder.Rollback().Error)
	stand.Must(t, <-done)
	stand.Must(t, tx.Rollback().Error)

	if _, err := find(db, gormlock.ForUpdate); !errors.Is(err, gormlock.ErrNoTransaction) {
		t.Error("outside of a transaction:", err)
	}
}

// stillWaits fails the test where a call has come back already.
func stillWaits(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Error("it did not wait:", err)
	case <-time.After(200 * time.Millisecond):
	}
}

// DefaultTimeout bounds a wait that has no bound of its own.
func TestRowLock_defaultTimeout(t *testing.T) {
	t.Parallel()
	db := mariaserver.Open(t, []any{&plain{}}, mariaserver.Plugin(gormlock.DefaultTimeout(time.Second)))
	stand.Must(t, db.Create(&plain{ID: 1}).Error)
	stand.Must(t, gormlock.LockRow(begin(t, db), &plain{ID: 1}))
	tx := begin(t, db)
	var err error
	within(t, 5*time.Second, func() { err = gormlock.LockRow(tx, &plain{ID: 1}) })
	if !errors.Is(err, gormlock.ErrLockTimeout) {
		t.Error(err)
	}
}

// Where a lock would reach no row, or other rows than were named, it is an error that names the cure.
func TestRowLock_refuses(t *testing.T) {
	t.Parallel()
	db := open(t, &plain{})
	stand.Must(t, db.Create(&plain{ID: 1}).Error)
	stand.Must(t, db.Exec("CREATE VIEW seen AS SELECT DISTINCT * FROM plains").Error)
	stand.Must(t, db.Exec("CREATE TABLE heap (id bigint primary key) ENGINE=MyISAM").Error)
	tx := begin(t, db)
	for what, err := range map[string]error{
		"lock the rows of its table":   tx.Table("seen").Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Find(&[]plain{}).Error,
		"ENGINE=InnoDB":                tx.Table("heap").Scopes(gormlock.WithSkipLocked()).Find(&[]map[string]any{}).Error,
		`leave out Of(["plains"])`:     tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Of("plains"))).Find(&[]plain{}).Error,
		"is not allowed with DISTINCT": tx.Distinct().Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Find(&[]plain{}).Error,
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want %q, got %v", what, err)
		}
	}
}

// The lock of a query does not reach into the queries in its FROM: they need one of their own.
func TestRowLock_inFrom(t *testing.T) {
	t.Parallel()
	db := open(t, &plain{})
	stand.Must(t, db.Create([]plain{{ID: 1}, {ID: 2}, {ID: 3}}).Error)
	lock := gormlock.RowLock(gormlock.ForUpdate)
	table := func(text string, args ...any) func(tx *gorm.DB) *gorm.DB {
		return func(tx *gorm.DB) *gorm.DB { return tx.Table(text, args...) }
	}
	for name, c := range map[string]struct {
		read  func(tx *gorm.DB) *gorm.DB
		locks bool
	}{
		"a table":  {table("plains"), true},
		"an alias": {table("plains AS p"), true},
		"a join": {func(tx *gorm.DB) *gorm.DB {
			return tx.Model(&plain{}).Joins("JOIN (SELECT 1 AS one) o ON one <= plains.id")
		}, true},
		"a join with a query": {func(tx *gorm.DB) *gorm.DB {
			return tx.Table("plains").Joins("JOIN (SELECT DISTINCT id AS k FROM plains) o ON k = plains.id")
		}, true},
		"a query that locks": {func(tx *gorm.DB) *gorm.DB {
			return tx.Table("(?) AS p", tx.Session(&gorm.Session{NewDB: true}).Model(&plain{}).Clauses(lock))
		}, true},
		"a query that locks, twice": {table("(SELECT * FROM (SELECT * FROM plains WHERE note <> '\\') FROM' LIMIT 9 FOR UPDATE) AS a) AS p"), true},
		"WITH that locks":           {table("(WITH c AS (SELECT * FROM plains FOR UPDATE) SELECT * FROM c) AS p"), true},
		"a query": {func(tx *gorm.DB) *gorm.DB {
			return tx.Table("(?) AS p", tx.Session(&gorm.Session{NewDB: true}).Model(&plain{}))
		}, false},
		"a query of a query":            {table("(SELECT * FROM (SELECT * FROM plains) AS a) AS p"), false},
		"a query around one that locks": {table("(SELECT q.* FROM (SELECT * FROM plains LIMIT 1 FOR UPDATE) AS a JOIN plains AS q) AS p"), false},
		"a query that shares":           {table("(SELECT * FROM plains LOCK IN SHARE MODE) AS p"), false},
		"a query in brackets":           {table("((SELECT * FROM plains) AS a JOIN (SELECT 1 AS one) AS b)"), false},
		"WITH":                          {table("(WITH c AS (SELECT * FROM plains) SELECT * FROM c) AS p"), false},
		"VALUES":                        {table("(VALUES (1)) AS p"), false},
	} {
		tx, rival := db.Begin(), db.Begin()
		err := c.read(tx).Clauses(lock).Find(&[]map[string]any{}).Error
		var free []int64
		stand.Must(t, rival.Raw("SELECT id FROM plains FOR UPDATE SKIP LOCKED").Scan(&free).Error)
		switch {
		case err == nil && len(free) > 0:
			t.Errorf("%s: %d are not locked, without an error", name, free)
		case c.locks && err != nil, !c.locks && (err == nil || !strings.Contains(err.Error(), "no row lock reaches its rows")):
			t.Errorf("%s: %v", name, err)
		}
		stand.Must(t, errors.Join(rival.Rollback().Error, tx.Rollback().Error))
	}
}

// LockRow, LockRows and VerifyVersion read the rows as they are, even if the snapshot is older.
func TestLockRow_readsPastTheSnapshot(t *testing.T) {
	t.Parallel()
	db := open(t, &account{})
	stand.Must(t, db.Create([]account{{ID: 1}, {ID: 2}}).Error)
	tx := begin(t, db)
	var a account
	stand.Must(t, tx.First(&a, 1).Error) // the snapshot
	old := a
	stand.Must(t, db.Exec("UPDATE accounts SET balance = 7, version = version + 1").Error)
	stand.MustStale(t, gormlock.VerifyVersion(tx, &old))
	stand.Must(t, gormlock.LockRow(tx, &a))
	stand.Equal(t, "LockRow", a.Balance, 7)
	stand.Must(t, gormlock.VerifyVersion(tx, &a))
	both := []account{{ID: 2}, {ID: 1}}
	stand.Must(t, gormlock.LockRows(tx, &both))
	stand.Equal(t, "LockRows", both[0].Balance+both[1].Balance, 14)
	a.Balance++
	stand.Must(t, tx.Save(&a).Error)
	stand.Equal(t, "version", a.Version, 3)
	if err := gormlock.LockRow(tx, &account{ID: 9}); !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Error("a row that is not there:", err)
	}

	other := begin(t, db)
	if err := gormlock.LockRow(other, &account{ID: 1}, gormlock.Try()); !errors.Is(err, gormlock.ErrNotAcquired) {
		t.Error("LockRow with Try:", err)
	}
	if err := gormlock.LockRows(other, &[]account{{ID: 1}}, gormlock.Try()); !errors.Is(err, gormlock.ErrNotAcquired) {
		t.Error("LockRows with Try:", err)
	}
}

// VerifyVersion keeps writers out until the transaction ends.
func TestVerifyVersion_keepsWritersOut(t *testing.T) {
	t.Parallel()
	db := open(t, &account{})
	a := account{ID: 1}
	stand.Must(t, db.Create(&a).Error)
	tx := begin(t, db)
	stand.Must(t, gormlock.VerifyVersion(tx, &a))
	done := make(chan error, 1)
	rival := a
	go func() { done <- db.Model(&rival).Update("balance", 5).Error }()
	stillWaits(t, done)
	stand.Must(t, tx.Commit().Error)
	stand.Must(t, <-done)
}
