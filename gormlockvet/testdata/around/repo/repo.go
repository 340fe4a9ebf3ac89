package repo

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"example.com/shop/around/models"
	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

const setBalance = `
	-- the nightly correction
	UPDATE accounts SET balance = ? WHERE id = ?`

func text(ctx context.Context, db *gorm.DB, pool *sql.DB, tx *sql.Tx, id int64, column string) {
	db.Exec("UPDATE accounts SET balance = balance - ? WHERE id = ?", 10, id)                              // want `around: UPDATE of accounts does not move its version`
	db.Exec(setBalance, 10, id)                                                                            // want `UPDATE of accounts`
	db.Exec(`UPDATE "public"."accounts" AS a SET "balance" = 1 WHERE a.id = 2`)                            // want `UPDATE of public.accounts`
	db.Exec("update people set name = 'x'")                                                                // want `UPDATE of people`
	db.Exec("UPDATE billing.invoices SET total = 1")                                                       // want `UPDATE of billing.invoices`
	db.Raw("UPDATE accounts SET owner = ? WHERE id = ? RETURNING *", "x", id).Scan(&models.Account{})      // want `UPDATE of accounts`
	db.Exec("WITH c AS (UPDATE accounts SET balance = 0 RETURNING id) SELECT * FROM c")                    // want `UPDATE of accounts`
	db.Exec(fmt.Sprintf("UPDATE %s SET balance = %d WHERE id = ?", "accounts", 1), id)                     // want `UPDATE of accounts`
	db.Exec("UPDATE accounts SET balance = 0 WHERE " + column + " = 1")                                    // want `UPDATE of accounts`
	db.Exec(fmt.Sprintf("UPDATE accounts SET balance = %d", id))                                           // want `UPDATE of accounts`
	db.Exec(fmt.Sprintf("UPDATE accounts SET balance = %v WHERE id = %v", float64(id), id))                // want `UPDATE of accounts`
	db.Exec("UPDATE accounts SET balance = " + strconv.FormatInt(id, 10))                                  // want `UPDATE of accounts`
	_ = gorm.G[models.Account](db).Exec(ctx, "UPDATE accounts SET balance = 0")                            // want `UPDATE of accounts`
	_, _ = pool.ExecContext(ctx, "UPDATE accounts SET balance = 0")                                        // want `UPDATE of accounts`
	_, _ = tx.Exec("DELETE FROM accounts WHERE id = $1", id)                                               // want `DELETE of accounts compares no version`
	db.Exec("INSERT INTO people (name) VALUES ('x')")                                                      // want `INSERT into people gives its rows no version`
	db.Exec("INSERT INTO accounts (id, balance) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET balance = 2") // want `ON CONFLICT DO UPDATE of accounts`
	db.Exec("UPDATE reports SET body = 'x' WHERE id = 1")                                                  // want `UPDATE of reports is not guarded by its fence`
	db.Exec("INSERT INTO reports (body) VALUES ('x')")                                                     // want `INSERT of reports is not guarded`
}

// written says in its text what the compiler does not know.
type written int64

func (written) String() string { return "1, version = version + 1" }

func innocentText(db *gorm.DB, set string, id int64) {
	// The version moves by hand, or by the trigger.
	db.Exec("UPDATE accounts SET balance = 1, version = version + 1 WHERE id = ? AND version = ?", id, 7)
	db.Exec(gormlock.VersionTrigger("shieldeds", "version"))
	db.Exec("UPDATE shieldeds SET body = 'x'")
	// Only columns that do not move it.
	db.Exec("UPDATE accounts SET seen = 1 WHERE id = ?", id)
	// The server moves xmin.
	db.Exec("UPDATE snapshots SET body = 'x'")
	// Other tables, other statements.
	db.Exec("UPDATE plains SET body = 'x'")
	db.Exec("UPDATE archive.accounts SET balance = 1")
	db.Raw("SELECT * FROM accounts WHERE id = ? FOR UPDATE", id).Scan(&models.Account{})
	db.Exec("INSERT INTO accounts (balance) VALUES (1)") // the table has a default
	db.Exec("INSERT INTO log (text) VALUES ('UPDATE accounts SET balance = 1')")
	db.Exec("CREATE TRIGGER t BEFORE UPDATE ON accounts EXECUTE FUNCTION f()")
	db.Exec("DELETE FROM accounts WHERE id = ? AND version = ?", id, 7)
	db.Exec("UPDATE reports SET body = 'x', fence = ? WHERE id = 1 AND fence <= ?", 7, 7)
	// Nobody knows.
	db.Exec("UPDATE accounts SET " + set)
	db.Exec(fmt.Sprintf("UPDATE accounts SET %s = 1", set))
	db.Exec(fmt.Sprintf("UPDATE accounts SET balance = %v", written(id)))
}

func tables(db *gorm.DB, id int64) {
	db.Table("accounts").Where("id = ?", id).Update("balance", 1)                                                       // want `Table\("accounts"\) names no model: UPDATE of accounts does not move its version`
	db.Table("accounts AS a").Where("a.id = ?", id).Updates(map[string]any{"balance": 1})                               // want `names no model`
	db.Table("accounts").Where("id = ?", id).Updates(models.Plain{Body: "x"})                                           // want `names no model`
	db.Table("accounts").Where("id = ?", id).Delete(&models.Plain{})                                                    // want `names no model: DELETE of accounts`
	db.Table("people").Create(map[string]any{"name": "x"})                                                              // want `names no model: INSERT into people`
	db.Table("reports").Where("id = ?", id).Update("body", "x")                                                         // want `is not guarded by its fence`
	db.Table("accounts").Model(&models.Account{}).Where("id = ?", id).Update("balance", 1)                              // the model is named
	db.Table("accounts").Create(&models.Account{})                                                                      // and here
	db.Table("accounts").Where("id = ?", id).Update("seen", 1)                                                          // does not move it
	db.Table("accounts").Where("id = ?", id).Updates(map[string]any{"balance": 1, "version": gorm.Expr("version + 1")}) // by hand
	db.Table("plains").Where("id = ?", id).Update("body", "x")
	db.Table("accounts").Find(&[]models.Plain{})
}

func byHand(db *gorm.DB, a *models.Account) {
	db.Model(a).UpdateColumn("version", 3)                        // want `UpdateColumn of the version of Account`
	db.Model(a).UpdateColumn("Version", gorm.Expr("version + 1")) // want `UpdateColumn of the version`
	db.Model(a).UpdateColumns(map[string]any{"version": 9})       // want `UpdateColumns of the version`
	db.Model(a).UpdateColumn("balance", 3)
	db.Model(a).UpdateColumns(map[string]any{"version": 9, "balance": 3}) // the version that is expected
}

func partly(ctx context.Context, db *gorm.DB, id int64) error {
	var a models.Account
	if err := db.Select("id", "balance", "version").First(&a, id).Error; err != nil {
		return err
	}
	a.Balance++
	if err := db.Save(&a).Error; err != nil { // want `Save writes all columns of Account, and line \d+ read only some of them`
		return err
	}
	var b models.Account
	db.Omit("owner").Take(&b, id)
	db.Save(&b) // want `Save writes all columns`
	c, err := gorm.G[models.Account](db).Select("id", "version").Where("id = ?", id).First(ctx)
	if err != nil {
		return err
	}
	return db.Save(&c).Error // want `Save writes all columns`
}

func whole(db *gorm.DB, id int64) {
	var a models.Account
	db.Select("id", "version").First(&a, id)
	db.Model(&a).Update("balance", 1) // one column
	db.Select("balance").Save(&a)
	db.First(&a, id)
	db.Save(&a) // read whole meanwhile
	var b models.Account
	db.Select("*").First(&b, id)
	db.Save(&b)
	var c models.Account
	db.Select("id", "balance", "owner", "seen", "version").First(&c, id)
	db.Save(&c)
	var p models.Plain
	db.Select("id").First(&p, id)
	db.Save(&p) // not ours
}
