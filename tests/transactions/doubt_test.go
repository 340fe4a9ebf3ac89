package transactions_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A commit whose answer does not come may have been one. The error says so, a row that was created is not created again, and nothing is written
// by a version that may not be there.
func TestCommitInDoubt(t *testing.T) {
	t.Parallel()
	ways := map[string]func(db *gorm.DB, write func(tx *gorm.DB) error) error{
		"its own transaction": func(db *gorm.DB, write func(tx *gorm.DB) error) error { return write(db) },
		"db.Transaction":      func(db *gorm.DB, write func(tx *gorm.DB) error) error { return db.Transaction(write) },
		"Transaction": func(db *gorm.DB, write func(tx *gorm.DB) error) error {
			return gormlock.Transaction(db, write, gormlock.Attempts(3))
		},
		"Transaction with a lock": func(db *gorm.DB, write func(tx *gorm.DB) error) error {
			return gormlock.Transaction(db, write, gormlock.Attempts(3), gormlock.Locking(gormlock.Key(t.Name())))
		},
	}
	for what, act := range map[string]wiretap.Action{"the request is lost": wiretap.CutRequest, "the answer is lost": wiretap.CutAnswer} {
		for way, in := range ways {
			t.Run(what+"/"+way, func(t *testing.T) {
				t.Parallel()
				proxy, dsn := pgtest.Tap(t, pgtest.SchemaDSN(t))
				db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
				stand.Must(t, db.AutoMigrate(&stand.Account{}))
				lose := func(write func(tx *gorm.DB) error) {
					t.Helper()
					times := 0
					proxy.OnQuery(func(sql string) wiretap.Action {
						if strings.Contains(strings.ToUpper(sql), "COMMIT") {
							return act
						}
						return wiretap.Pass
					})
					err := in(db, func(tx *gorm.DB) error { times++; return write(tx) })
					proxy.OnQuery(nil)
					if err == nil || !strings.Contains(err.Error(), "whether this transaction was committed is not known") || errors.Is(err, driver.ErrBadConn) {
						t.Errorf("%v", err)
					}
					if times != 1 {
						t.Errorf("it ran %d times", times)
					}
				}
				a := stand.Account{Balance: 1}
				lose(func(tx *gorm.DB) error { return tx.Create(&a).Error })
				if a.ID == 0 {
					t.Error("the struct has lost its key")
				}
				stand.MustBeUnread(t, db.Save(&a).Error)
				if act == wiretap.CutRequest { // as the error says
					stand.MustDo(t, db.Create(&a))
				}
				var n int64
				if stand.Must(t, db.Model(&stand.Account{}).Count(&n).Error); n != 1 {
					t.Errorf("%d rows", n)
				}
				b := stand.Account{Balance: 1}
				stand.Must(t, db.Create(&b).Error)
				lose(func(tx *gorm.DB) error { return tx.Model(&b).Update("balance", 2).Error })
				if err := db.Model(&b).Update("balance", 3).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
					t.Errorf("updated again: %v", err)
				}
				stand.Must(t, db.First(&b, b.ID).Error)
				stand.Must(t, db.Model(&b).Update("balance", 4).Error)
			})
		}
	}
}

// With plain transactions the pool sees no commit, and Transaction says so of its own.
func TestCommitInDoubt_ofPlainTransactions(t *testing.T) {
	t.Parallel()
	for what, act := range map[string]wiretap.Action{"the request is lost": wiretap.CutRequest, "the answer is lost": wiretap.CutAnswer} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			proxy, dsn := pgtest.Tap(t, pgtest.SchemaDSN(t))
			db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New(gormlock.PlainTransactions())))
			stand.Must(t, db.AutoMigrate(&stand.Account{}))
			a := stand.Account{Balance: 1}
			stand.Must(t, db.Create(&a).Error)
			proxy.OnQuery(func(sql string) wiretap.Action {
				if strings.Contains(strings.ToUpper(sql), "COMMIT") {
					return act
				}
				return wiretap.Pass
			})
			times := 0
			err := gormlock.Transaction(db, func(tx *gorm.DB) error {
				times++
				return tx.Model(&a).Update("balance", 2).Error
			}, gormlock.Attempts(3))
			proxy.OnQuery(nil)
			if err == nil || !strings.Contains(err.Error(), "whether this transaction was committed is not known") || times != 1 {
				t.Errorf("%d times: %v", times, err)
			}
			if err := db.Model(&a).Update("balance", 3).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("updated again: %v", err)
			}
			stand.Must(t, db.First(&a, a.ID).Error)
			stand.Must(t, db.Model(&a).Update("balance", 4).Error)
		})
	}
}

// What the server or the client itself says of a commit leaves no doubt.
func TestCommitInDoubt_notWhereItIsKnown(t *testing.T) {
	t.Parallel()
	t.Run("transactions of gormlock", func(t *testing.T) { t.Parallel(); isKnown(t, true, gormlock.New()) })
	t.Run("plain transactions", func(t *testing.T) { t.Parallel(); isKnown(t, false, gormlock.New(gormlock.PlainTransactions())) })
}

func isKnown(t *testing.T, own bool, plugin *gormlock.Plugin) {
	t.Helper()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(plugin))
	stand.Must(t, db.AutoMigrate(&stand.Account{}))
	a := stand.Account{Balance: 1}
	stand.Must(t, db.Create(&a).Error)
	rival := pgtest.SQLDB(t)
	for name, write := range map[string]func(tx *gorm.DB, cancel func()) error{
		"rolled back by the server": func(tx *gorm.DB, _ func()) error {
			stand.Must(t, tx.Model(&a).Update("balance", 2).Error)
			_ = tx.Exec("SELECT 1/0").Error
			return nil
		},
		"rolled back by the server, and its session ended": func(tx *gorm.DB, _ func()) error {
			var pid int
			stand.MustDo(t, tx.Raw("SELECT pg_backend_pid()").Scan(&pid))
			stand.Must(t, tx.Model(&a).Update("balance", 2).Error)
			_ = tx.Exec("SELECT 1/0").Error
			if !own {
				return nil // plain transactions do not know what the server has made of the error
			}
			_, err := rival.Exec("SELECT pg_terminate_backend($1, 5000)", pid)
			return err
		},
		"ended by its ctx": func(tx *gorm.DB, cancel func()) error {
			stand.Must(t, tx.Model(&a).Update("balance", 2).Error)
			cancel()
			return nil
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		err := gormlock.Transaction(db.WithContext(ctx), func(tx *gorm.DB) error { return write(tx, cancel) })
		cancel()
		if err == nil || strings.Contains(err.Error(), "not known") {
			t.Errorf("%s: %v", name, err)
		}
		stand.Must(t, db.Model(&a).Update("balance", 3).Error)
	}
}
