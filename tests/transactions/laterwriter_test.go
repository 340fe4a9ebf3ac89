package transactions_test

import (
	"testing"

	"gorm.io/gorm"

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
				stand.Equal(t, option+" "+name+": our own", own.Version, 0)
			}
		}
	}
}
