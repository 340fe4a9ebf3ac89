package gormlock_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// database is a PostgreSQL with the plugin, and with the tables of models. Those of them that hold anything are rows from the
// start. Programs open their own:
//
//	db, err := gorm.Open(postgres.Open(dsn))
//	err = db.Use(gormlock.New())
func database(models ...any) (db *gorm.DB, end func()) {
	t := pgtest.NewExample()
	db = pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	err := errors.Join(gormlock.MigrateAll(db), db.AutoMigrate(models...))
	for _, rows := range models {
		if !reflect.Indirect(reflect.ValueOf(rows)).IsZero() {
			err = errors.Join(err, db.Create(rows).Error)
		}
	}
	if err != nil {
		panic(err)
	}
	return db, t.End
}

// One at a time counts the numbers of a customer: the lock is taken before the statement, and freed by the commit.
func ExampleWithXactLock() {
	type Invoice struct {
		ID, CustomerID, Number int64
	}
	db, end := database(&Invoice{})
	defer end()

	err := db.Transaction(func(tx *gorm.DB) error {
		var last Invoice
		lock := gormlock.WithXactLock(gormlock.Key("numbers", 7))
		if err := tx.Scopes(lock).Where("customer_id = ?", 7).Order("number DESC").Limit(1).Find(&last).Error; err != nil {
			return err
		}
		next := Invoice{CustomerID: 7, Number: last.Number + 1}
		fmt.Println("number", next.Number)
		return tx.Create(&next).Error
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: number 1
}

// The same lock for GORM's generics, which drop the scopes of a db: it is a clause of gorm.G itself.
func ExampleXactLock() {
	type Invoice struct{ ID int64 }
	db, end := database(&Invoice{})
	defer end()

	err := db.Transaction(func(tx *gorm.DB) error {
		lock := gormlock.XactLock(gormlock.Key("invoices"))
		found, err := gorm.G[Invoice](tx, lock).Find(context.Background())
		fmt.Println(len(found), "invoices")
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 0 invoices
}

// Locks now, without a statement: both or none.
func ExampleAcquireXactLock() {
	db, end := database()
	defer end()

	err := db.Transaction(func(tx *gorm.DB) error {
		both := []lockkey.Key{gormlock.Key("account", 1), gormlock.Key("account", 2)}
		if err := gormlock.AcquireXactLock(tx, both); err != nil {
			return err
		}
		fmt.Println("nobody else moves money between them")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: nobody else moves money between them
}

// If another process is at it, that is enough.
func ExampleTry() {
	db, end := database()
	defer end()
	report := gormlock.Locking(gormlock.Key("report"), gormlock.Try())

	build := func(*gorm.DB) error { return nil }
	err := gormlock.Transaction(db, func(*gorm.DB) error {
		return gormlock.Transaction(db, build, report) // on db, and not on tx: as another process would
	}, report)
	if errors.Is(err, gormlock.ErrNotAcquired) {
		fmt.Println("the report is being built")
	}
	// Output: the report is being built
}

// A key is made of parts; each key is one lock.
func ExampleKey() {
	key := gormlock.Key("invoice", 42)
	fmt.Println(key)
	fmt.Println(key == gormlock.Key("invoice", 42), key == gormlock.Key("invoice", "42"))
	// Output:
	// invoice/42
	// true true
}
