package rows_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// twoSchemas are one where a name stands for a table, and one where it stands for a view that computes its rows.
func twoSchemas(t *testing.T, opts ...gormlock.Option) (db *gorm.DB, here, there string) {
	t.Helper()
	plugin := gormlock.New(opts...)
	t.Cleanup(func() { _ = plugin.Close() })
	db = pgtest.Open(t, pgtest.Plugin(plugin), pgtest.Schema(), pgtest.MaxConns(1))
	stand.Must(t, db.Raw("SELECT current_schema()").Scan(&here).Error)
	there = here + "_there"
	other := stand.Open(t, pgtest.Param("search_path", there)) // which the plugin does not hear of
	stand.Must(t, other.Exec("CREATE SCHEMA "+there).Error)
	t.Cleanup(func() { stand.Must(t, other.Exec("DROP SCHEMA "+there+" CASCADE").Error) })
	const columns = "(id bigint PRIMARY KEY, name text, version bigint NOT NULL DEFAULT 1, seen_id bigint)"
	stand.Must(t, other.Exec("CREATE TABLE "+here+".shown "+columns+"; INSERT INTO "+here+".shown VALUES (1, 'a', 1, 1);"+
		"CREATE TABLE "+there+".behind "+columns+"; INSERT INTO "+there+".behind VALUES (1, 'a', 1, 1);"+
		"CREATE VIEW "+there+".shown AS TABLE "+there+".behind UNION ALL TABLE "+there+".behind LIMIT 1").Error)
	return db, here, there
}

// locks are calls that lock the row, or must say that they cannot.
var locks = map[string]func(tx *gorm.DB) error{
	"WithRowLock": locksOnView["WithRowLock"], "LockRow": locksOnView["LockRow"], "VerifyVersion": locksOnView["VerifyVersion"],
}

func mustLock(t *testing.T, tx *gorm.DB, where string, can bool) {
	t.Helper()
	for call, lock := range locks {
		switch err := lock(tx); {
		case can && err != nil:
			t.Errorf("%s: %s: %v", where, call, err)
		case !can && (err == nil || !strings.Contains(err.Error(), "no row lock reaches its rows")):
			t.Errorf("%s: %s: %v", where, call, err)
		}
	}
}

// A name that stands for a table in one transaction may stand for a view in another one.
func TestRowLock_ofANameThatMeansTwo(t *testing.T) {
	t.Parallel()
	for name, turn := range map[string]func(tx *gorm.DB, schema string) error{
		"SET LOCAL":  func(tx *gorm.DB, schema string) error { return tx.Exec("SET LOCAL search_path TO " + schema).Error },
		"SET SCHEMA": func(tx *gorm.DB, schema string) error { return tx.Exec("SET SCHEMA '" + schema + "'").Error },
		"set_config": func(tx *gorm.DB, schema string) error {
			return tx.Raw("SELECT set_config('search_path', ?, true)", schema).Scan(new(string)).Error
		},
		"past GORM": func(tx *gorm.DB, schema string) error {
			_, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, "SET LOCAL search_path TO "+schema)
			return err
		},
	} {
		for mode, opts := range map[string][]gormlock.Option{"": nil, ", PlainTransactions": {gormlock.PlainTransactions()}} {
			if mode != "" && name == "past GORM" {
				continue // nobody hears of it
			}
			t.Run(name+mode, func(t *testing.T) {
				t.Parallel()
				db, here, there := twoSchemas(t, opts...)
				for range 2 {
					stand.InTx(t, db, func(tx *gorm.DB) { mustLock(t, tx, "here", true) })
					stand.InTx(t, db, func(tx *gorm.DB) {
						stand.Must(t, turn(tx, there))
						mustLock(t, tx, "there", false)
						stand.Must(t, turn(tx, here))
						mustLock(t, tx, "here again", true)
						stand.Must(t, turn(tx, there))
						mustLock(t, tx, "there again", false)
					})
				}
			})
		}
	}
}

// The search_path of a connection stays what a statement has made it.
func TestRowLock_onAConnectionWithAnotherPath(t *testing.T) {
	t.Parallel()
	for name, turn := range map[string]func(db *gorm.DB, schema string, lock func(*gorm.DB)) error{
		"SET": func(db *gorm.DB, schema string, lock func(*gorm.DB)) error {
			err := db.Exec("SET search_path TO " + schema).Error
			lock(db)
			return err
		},
		"SET in a transaction": func(db *gorm.DB, schema string, lock func(*gorm.DB)) error {
			err := db.Transaction(func(tx *gorm.DB) error { return tx.Exec("SET search_path TO " + schema).Error })
			lock(db)
			return err
		},
		"Connection": func(db *gorm.DB, schema string, lock func(*gorm.DB)) error {
			return db.Connection(func(conn *gorm.DB) error {
				err := conn.Exec("SELECT set_config('search_path', ?, false)", schema).Error
				lock(conn)
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, here, there := twoSchemas(t)
			for range 2 {
				stand.Must(t, turn(db, here, func(db *gorm.DB) { stand.InTx(t, db, func(tx *gorm.DB) { mustLock(t, tx, "here", true) }) }))
				stand.Must(t, turn(db, there, func(db *gorm.DB) { stand.InTx(t, db, func(tx *gorm.DB) { mustLock(t, tx, "there", false) }) }))
			}
		})
	}
}

// A plugin may serve databases whose connections begin with other search_paths.
func TestRowLock_onTwoDatabases(t *testing.T) {
	t.Parallel()
	db, _, there := twoSchemas(t)
	other := pgtest.Open(t, pgtest.Plugin(db.Plugins[gormlock.New().Name()]), pgtest.Param("search_path", there))
	for range 2 {
		stand.InTx(t, db, func(tx *gorm.DB) { mustLock(t, tx, "here", true) })
		stand.InTx(t, other, func(tx *gorm.DB) { mustLock(t, tx, "there", false) })
	}
}

// The program itself may put a view in the place of a table.
func TestRowLock_ofATableThatBecomesAView(t *testing.T) {
	t.Parallel()
	const become = "ALTER TABLE shown RENAME TO renamed; CREATE VIEW shown AS TABLE renamed UNION ALL TABLE renamed LIMIT 1"
	for name, run := range map[string]func(db *gorm.DB) error{
		"alone": func(db *gorm.DB) error { return db.Exec(become).Error },
		"in a transaction": func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Exec(become).Error })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, _, _ := twoSchemas(t)
			stand.InTx(t, db, func(tx *gorm.DB) { mustLock(t, tx, "a table", true) })
			stand.Must(t, run(db))
			stand.InTx(t, db, func(tx *gorm.DB) { mustLock(t, tx, "a view", false) })
		})
	}
}

// What was asked once is not asked again: not by other transactions, and in one with a path of its own not by a second statement.
func TestRowLock_asksOnce(t *testing.T) {
	t.Parallel()
	_, here, there := twoSchemas(t)
	named := locks["WithRowLock"]
	qualified := func(tx *gorm.DB) error {
		return tx.Table(here + ".shown").Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Find(&[]map[string]any{}).Error
	}
	path := "SET LOCAL search_path TO " + here + ", " + there
	for name, c := range map[string]struct {
		path string
		lock func(*gorm.DB) error
		asks int
	}{"for all": {"SELECT 1", named, 0}, "for a transaction": {path, named, 1}, "of a name with a schema": {path, qualified, 0}} {
		proxy, dsn := pgtest.Tap(t, pgtest.SchemaDSN(t))
		plugin := gormlock.New()
		t.Cleanup(func() { _ = plugin.Close() })
		db := pgtest.Open(t, pgtest.Plugin(plugin), pgtest.Through(dsn))
		stand.InTx(t, db, func(tx *gorm.DB) { stand.Must(t, c.lock(tx)) })
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.Must(t, tx.Exec(c.path).Error)
			proxy.Reset()
			for range 3 {
				stand.Must(t, c.lock(tx))
			}
			asked := 0
			for _, query := range proxy.Statements() {
				if strings.Contains(query, "WITH RECURSIVE read") {
					asked++
				}
			}
			stand.Equal(t, name+": asked", asked, c.asks)
		})
	}
}
