package mariadb_test

import (
	"strings"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A statement about tables commits the open transaction. What was written before stays, in memory too; what follows is in a
// transaction again, which a rollback takes back, and row locks last until it ends.
func TestDDLInATransaction(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]mariaserver.Option{
		"plain": nil, "PrepareStmt": {mariaserver.Config(func(c *gorm.Config) { c.PrepareStmt = true })}, "interpolated": {mariaserver.Param("interpolateParams=true")},
		"like MySQL": {mariaserver.Dialect(func(c *mysql.Config) { c.DisableWithReturning = true })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := mariaserver.Open(t, []any{&account{}, &plain{}}, opts...)
			a := account{ID: 1}
			stand.Must(t, db.Create(&a).Error)
			stand.Must(t, db.Create(&plain{ID: 1}).Error)
			for what, ddl := range map[string]func(tx *gorm.DB) error{
				"CREATE":      func(tx *gorm.DB) error { return tx.Exec("CREATE TABLE made (id int)").Error },
				"AutoMigrate": func(tx *gorm.DB) error { return tx.AutoMigrate(&product{}) },
				"a comment":   func(tx *gorm.DB) error { return tx.Exec("/* up */ -- x\n DROP TABLE made").Error },
				"TRUNCATE":    func(tx *gorm.DB) error { return tx.Exec("TRUNCATE plains").Error },
				"one that fails": func(tx *gorm.DB) error {
					if tx.Exec("CREATE TABLE accounts (id int)").Error == nil {
						t.Error("no error")
					}
					return nil
				},
			} {
				if what == "a comment" {
					_ = db.Exec("CREATE TABLE IF NOT EXISTS made (id int)").Error
				} else {
					_ = db.Exec("DROP TABLE IF EXISTS made").Error
				}
				tx := begin(t, db)
				before := a.Version
				stand.Must(t, tx.Model(&a).Update("balance", a.Balance+1).Error)
				stand.Must(t, ddl(tx))
				stand.Equal(t, what+": the row", stand.Row[account](t, db, 1), a)
				stand.Must(t, tx.Model(&a).Update("balance", a.Balance+1).Error)
				stand.Must(t, tx.Create(&account{ID: 2}).Error)
				held := db.Transaction(func(other *gorm.DB) error { return gormlock.LockRow(other, &account{ID: 1}, gormlock.Try()) })
				if held == nil {
					t.Errorf("%s: the row is not locked afterwards", what)
				}
				stand.Must(t, tx.Rollback().Error)
				stand.Equal(t, what+": version in memory", a.Version, before+1)
				stand.Must(t, db.First(&a, 1).Error)
				stand.Equal(t, what+": version of the row", a.Version, before+1)
				var rows int64
				stand.Must(t, db.Model(&account{}).Count(&rows).Error)
				stand.Equal(t, what+": rows", rows, 1)
			}
			tx := begin(t, db)
			stand.Must(t, tx.Model(&a).Update("balance", 50).Error)
			stand.Must(t, tx.Exec("CREATE TEMPORARY TABLE passing (id int)").Error) // which commits nothing
			stand.Must(t, tx.Rollback().Error)
			stand.Equal(t, "version after a temporary table", stand.Row[account](t, db, 1).Version, a.Version)
		})
	}
}

// What must not be committed is not committed by a statement about tables either.
func TestDDLDoesNotCommitWhatIsRefused(t *testing.T) {
	t.Parallel()
	db := open(t, &cart{}, &entry{})
	stand.Must(t, db.Create(&cart{ID: 1}).Error)
	stand.Must(t, db.Exec("CREATE TRIGGER refuses BEFORE INSERT ON entries FOR EACH ROW SIGNAL SQLSTATE '45000'").Error)
	tx := begin(t, db)
	if tx.Create(&entry{ID: 1, CartID: 1}).Error == nil { // the root has moved
		t.Error("no error")
	}
	if tx.Exec("CREATE TABLE made (id int)").Error == nil {
		t.Error("the statement was executed")
	}
	if tx.Commit().Error == nil {
		t.Error("it was committed")
	}
	stand.Equal(t, "version", stand.Row[cart](t, db, 1).Version, 1)
}

// A routine that ends the transaction is noticed.
func TestARoutineThatCommits(t *testing.T) {
	t.Parallel()
	db := open(t, &plain{})
	stand.Must(t, db.Create(&plain{ID: 2}).Error)
	for name, body := range map[string]string{"commits": "COMMIT", "commits_and_reads": "BEGIN COMMIT; SELECT 1; END"} {
		stand.Must(t, db.Exec("CREATE PROCEDURE "+name+"() "+body).Error)
		tx := begin(t, db)
		stand.Must(t, tx.Exec("UPDATE plains SET balance = 1").Error)
		stand.Must(t, tx.Exec("CALL "+name+"()").Error)
		mustBeOver(t, db, tx, "routine has ended")
	}
	stand.Must(t, db.Exec("CREATE PROCEDURE lists() SELECT * FROM plains").Error)
	tx := begin(t, db)
	var rows []plain
	stand.Must(t, tx.Raw("CALL lists()").Scan(&rows).Error)
	stand.Must(t, tx.Exec("UPDATE plains SET balance = 9").Error)
	stand.Must(t, tx.Commit().Error)
	if len(rows) != 1 || strings.TrimSpace(rows[0].Note) != "" {
		t.Error(rows)
	}
}
