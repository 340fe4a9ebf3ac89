package roots_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// elsewhere are ways to let the names of tables stand for others within a transaction: there is a schema with a row of each id.
var elsewhere = map[string]func(tx *gorm.DB, schema string) error{
	"SET LOCAL":  func(tx *gorm.DB, schema string) error { return tx.Exec("SET LOCAL search_path TO " + schema).Error },
	"SET SCHEMA": func(tx *gorm.DB, schema string) error { return tx.Exec("SET SCHEMA '" + schema + "'").Error },
	"set_config": func(tx *gorm.DB, schema string) error {
		return tx.Exec("SELECT set_config('search_path', ?, true)", schema).Error
	},
	"a block of code": func(tx *gorm.DB, schema string) error {
		return tx.Exec("DO 'BEGIN SET LOCAL search_path TO " + schema + "; END'").Error
	},
	"with a savepoint": func(tx *gorm.DB, schema string) error {
		return tx.Exec("SET LOCAL search_path TO " + schema + "; SAVEPOINT s").Error
	},
	"a temporary table": func(tx *gorm.DB, schema string) error {
		return tx.Exec("CREATE TEMP TABLE orders ON COMMIT DROP AS TABLE " + schema + ".orders; CREATE TEMP TABLE lines (LIKE lines INCLUDING ALL) ON COMMIT DROP").Error
	},
}

// copied makes a schema that has the orders and lines, and the rows of orders, until the test ends.
func copied(t *testing.T, db *gorm.DB) (schema string) {
	t.Helper()
	stand.MustDo(t, db.Raw("SELECT current_schema() || '_there'").Scan(&schema))
	stand.MustDo(t, db.Exec("CREATE SCHEMA "+schema))
	t.Cleanup(func() { stand.MustDo(t, db.Exec("DROP SCHEMA "+schema+" CASCADE")) })
	for _, table := range []string{"orders", "lines"} {
		stand.MustDo(t, db.Exec("CREATE TABLE "+schema+"."+table+" (LIKE "+table+" INCLUDING ALL)"))
	}
	stand.MustDo(t, db.Exec("INSERT INTO "+schema+".orders SELECT * FROM orders"))
	return schema
}

// What a transaction did to a row says nothing of the row with this key in another table of the same name.
func TestRoot_inAnotherTableOfItsName(t *testing.T) {
	t.Parallel()
	for name, turn := range elsewhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, models)
			o := stand.Made(t, db, order{})
			there := copied(t, db)

			err := db.Transaction(func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Create(&line{OrderID: o.ID}))
				stand.Equal(t, "here", versionOf(t, tx, o.ID), 2)
				stand.Must(t, turn(tx, there))
				stand.Equal(t, "there, before", versionOf(t, tx, o.ID), 1)
				stand.MustDo(t, tx.Create(&line{OrderID: o.ID}))
				stand.Equal(t, "there", versionOf(t, tx, o.ID), 2)
				return nil
			})
			stand.Must(t, err)

			// A rival was there, and the transaction itself was here.
			o = stand.Row[order](t, db, o.ID)
			err = db.Transaction(func(tx *gorm.DB) error {
				other := o
				stand.MustDo(t, tx.Model(&other).Update("title", "x"))
				stand.MustDo(t, tx.Exec("UPDATE "+there+".orders SET version = ?", o.Version+1))
				stand.Must(t, turn(tx, there))
				return tx.Model(&order{ID: o.ID, Version: o.Version}).Update("title", "y").Error
			})
			stand.MustStale(t, err)
			stand.Equal(t, "retryable", gormlock.IsRetryable(err), true)
		})
	}
}

// A rollback to a savepoint takes the search_path back as well.
func TestRoot_inItsTableAgain(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, models)
	o := stand.Made(t, db, order{})
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Create(&line{OrderID: o.ID}))
		if err := tx.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Exec("SET LOCAL search_path TO pg_catalog"))
			return errors.New("back")
		}); err == nil {
			t.Error("not rolled back")
		}
		stand.MustDo(t, tx.Create(&line{OrderID: o.ID}))
		stand.MustDo(t, tx.Exec("SELECT set_config('app.user', 'me', true)"))
		stand.MustDo(t, tx.Create(&line{OrderID: o.ID}))
		return nil
	}))
	stand.Equal(t, "moved once", versionOf(t, db, o.ID), 2)
}

// A savepoint of the same text was set behind the search_path, so a rollback to it keeps that.
func TestRoot_behindASavepointOfAnotherTable(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, models)
	o := stand.Made(t, db, order{})
	there := copied(t, db)
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Create(&line{OrderID: o.ID}))
		stand.MustDo(t, tx.Exec("SET LOCAL search_path TO "+there+"; SAVEPOINT s"))
		stand.MustDo(t, tx.Exec("ROLLBACK TO s"))
		stand.MustDo(t, tx.Create(&line{OrderID: o.ID}))
		stand.Equal(t, "there", versionOf(t, tx, o.ID), 2)
		return nil
	}))
}
