package locks_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A text that ends its transaction, and goes on in another one, would free the lock of its statement: nothing of it is executed.
func TestXactLock_ofATextThatEndsItsTransaction(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&widgetMaker{}, &widget{}, &widgetPart{}}, pgtest.SimpleProtocol()) // which sends several statements
	key := pgtest.Key(t)
	const insert = "INSERT INTO widgets (name) VALUES ('late')"
	calls := map[string]func(tx *gorm.DB, text string) error{
		"Exec": func(tx *gorm.DB, text string) error { return tx.Exec(text).Error },
		"Find": func(tx *gorm.DB, text string) error { return tx.Raw(text).Find(&[]widget{}).Error },
		"Scan": func(tx *gorm.DB, text string) error { return tx.Raw(text).Scan(&[]widget{}).Error },
		"Row":  func(tx *gorm.DB, text string) error { return tx.Raw(text).Row().Err() },
		"G": func(tx *gorm.DB, text string) error {
			return gorm.G[widget](tx.Session(&gorm.Session{NewDB: true}), gormlock.XactLock(key)).Exec(t.Context(), text)
		},
	}
	for text, refused := range map[string]bool{
		"COMMIT; BEGIN; " + insert: true, "END; BEGIN; " + insert: true, "ABORT; START TRANSACTION; " + insert: true, "ROLLBACK; " + insert: true,
		"COMMIT AND CHAIN": true, "ROLLBACK AND CHAIN": true, "END WORK AND CHAIN": true, "ABORT TRANSACTION AND CHAIN;": true, "commit/**/And -- x\n chain": true,
		insert + "; COMMIT AND CHAIN": true, "SELECT 1; rollback work; " + insert: true, "/* ; */ COMMIT;;BEGIN;" + insert: true,
		"COMMIT; SELECT 1": true, "SELECT E'\\''; COMMIT; " + insert: true,

		"SELECT 'COMMIT; BEGIN'": false, "SELECT 1 /* ; COMMIT; BEGIN */": false, "SELECT 1 -- ; COMMIT AND CHAIN": false, "SELECT $a$; COMMIT; BEGIN; $a$": false,
		"DO $$ BEGIN PERFORM 1; END $$": false, `SELECT 1 AS "; COMMIT; BEGIN"`: false, "SELECT CASE WHEN true THEN 1 END": false,
		"SAVEPOINT a; RELEASE a": false, "SELECT 1; SELECT 2": false, insert + "; COMMIT": false, "COMMIT": false, "COMMIT AND NO CHAIN;": false, "ROLLBACK /* AND CHAIN */": false,
		"CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; END": false,
	} {
		for name, call := range calls {
			if !refused && strings.Contains(text, "COMMIT") && name == "Row" {
				continue // whose rows are open
			}
			var before, after int64
			stand.MustDo(t, db.Model(&widget{}).Count(&before))
			tx := db.Begin()
			err := call(tx.Scopes(gormlock.WithXactLock(key)), text)
			tx.Rollback()
			stand.MustDo(t, db.Model(&widget{}).Count(&after))
			switch { // not every text gives rows of widgets
			case refused && (err == nil || !strings.Contains(err.Error(), "goes on") || after != before):
				t.Errorf("%s of %q is not refused: %v, %d rows more", name, text, err, after-before)
			case !refused && err != nil && strings.HasPrefix(err.Error(), "gormlock: "):
				t.Errorf("%s of %q: %v", name, text, err)
			}
		}
	}
}
