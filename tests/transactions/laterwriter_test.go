package transactions_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A row that another transaction wrote is read with its version, even if it began after ours and was committed while we waited for the row. One
// that a savepoint of our own wrote is not, where a rollback could not reach the struct.
func TestLockedRow_ofALaterWriter(t *testing.T) {
	t.Parallel()
	locks := map[string]func(tx *gorm.DB, a *stand.Account) error{
		"gorm.G": func(tx *gorm.DB, a *stand.Account) (err error) {
			*a, err = gorm.G[stand.Account](tx, gormlock.RowLock(gormlock.ForUpdate)).Where("id = ?", a.ID).First(t.Context())
			return err
		},
		"LockRow": func(tx *gorm.DB, a *stand.Account) error { return gormlock.LockRow(tx, a) },
		"scope": func(tx *gorm.DB, a *stand.Account) error {
			return tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).First(a, a.ID).Error
		},
	}
	for option, plugin := range map[string]*gormlock.Plugin{"default": gormlock.New(), "PlainTransactions": gormlock.New(gormlock.PlainTransactions())} {
		db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(plugin))
		stand.Must(t, db.AutoMigrate(&stand.Account{}))
		for name, lock := range locks {
			for _, nested := range []bool{false, true} {
				first, second := stand.Made(t, db, stand.Account{}), stand.Made(t, db, stand.Account{})
				stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
					stand.MustDo(t, tx.Model(&first).Update("balance", 1)) // it has its id now
					stand.Must(t, tx.Transaction(func(tx *gorm.DB) error {
						return tx.Exec("UPDATE accounts SET balance = 2 WHERE id = ?", first.ID).Error // and that of a savepoint
					}))
					pid, done := backend(t, tx), make(chan error, 1)
					rival := db.Begin()
					stand.MustDo(t, rival.Exec("UPDATE accounts SET balance = 7, version = version + 1 WHERE id = ?", second.ID))
					read := stand.Account{ID: second.ID}
					get := func(tx *gorm.DB) error { return lock(tx, &read) }
					go func() {
						if nested {
							done <- tx.Transaction(get)
						} else {
							done <- get(tx)
						}
					}()
					pgtest.WaitBackendBlocked(t, pid)
					stand.Must(t, rival.Commit().Error)
					stand.Must(t, <-done)
					stand.Equal(t, option+" "+name+": the rival's version", read.Version, 2)
					return tx.Save(&read).Error
				}))
				var own stand.Account
				_ = db.Transaction(func(tx *gorm.DB) error {
					own = stand.Account{ID: first.ID}
					stand.Must(t, tx.Transaction(func(tx *gorm.DB) error {
						return tx.Exec("UPDATE accounts SET balance = 3, version = version + 1 WHERE id = ?", first.ID).Error
					}))
					stand.Must(t, lock(tx, &own))
					return errUndo
				})
				stand.Equal(t, option+" "+name+": our own", own.Version, stand.Unread)
			}
		}
	}
}

// A row that a released savepoint of our own has written is our own too.
func TestRead_ofAReleasedSavepoint(t *testing.T) {
	t.Parallel()
	writes := map[string]func(tx *gorm.DB, id int64) error{
		"Once": func(tx *gorm.DB, id int64) error {
			_, err := gormlock.Once(tx, t.Name(), func(tx *gorm.DB) (int, error) {
				return 1, tx.Exec("UPDATE accounts SET balance = 999, version = version + 1 WHERE id = ?", id).Error
			})
			return err
		},
		"SAVEPOINT": func(tx *gorm.DB, id int64) error {
			return errors.Join(tx.Exec("SAVEPOINT a").Error, tx.Exec("UPDATE accounts SET balance = 999, version = version + 1 WHERE id = ?", id).Error, tx.Exec("RELEASE a").Error)
		},
		"a function": func(tx *gorm.DB, id int64) error { return tx.Exec("SELECT bump(?)", id).Error },
	}
	locks := map[string][]clause.Expression{"no lock": nil, "a lock": {gormlock.RowLock(gormlock.ForUpdate)}}
	for option, plugin := range map[string]*gormlock.Plugin{"default": gormlock.New(), "PlainTransactions": gormlock.New(gormlock.PlainTransactions())} {
		db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(plugin))
		stand.Must(t, errors.Join(db.AutoMigrate(&stand.Account{}), gormlock.MigrateOnce(db)))
		stand.MustDo(t, db.Exec(`CREATE OR REPLACE FUNCTION bump(which bigint) RETURNS void LANGUAGE plpgsql AS $$
			BEGIN UPDATE accounts SET balance = 999, version = version + 1 WHERE id = which; EXCEPTION WHEN unique_violation THEN NULL; END $$`))
		for name, write := range writes {
			for locked, lock := range locks {
				for _, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelRepeatableRead, sql.LevelSerializable} {
					for _, first := range []bool{false, true} {
						a, other := stand.Made(t, db, stand.Account{}), stand.Made(t, db, stand.Account{})
						var read stand.Account
						undone := db.Transaction(func(tx *gorm.DB) error {
							if first {
								stand.MustDo(t, tx.Exec("UPDATE accounts SET balance = 1 WHERE id = ?", other.ID))
							}
							stand.Must(t, write(tx, a.ID))
							var err error
							read, err = gorm.G[stand.Account](tx, lock...).Where("id = ?", a.ID).First(t.Context())
							return errors.Join(err, errUndo)
						}, &sql.TxOptions{Isolation: level})
						what := fmt.Sprintf("%s, %s, %s, %s, first %t", option, name, locked, level, first)
						stand.Equal(t, what+": the balance", read.Balance, 999)
						stand.Equal(t, what+": the version", read.Version, stand.Unread)
						if !errors.Is(undone, errUndo) {
							t.Error(what, undone)
						}
					}
				}
			}
		}
	}
}
