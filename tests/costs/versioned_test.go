package costs_test

import (
	"math"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// dry builds statements and sends none.
func dry(b testing.TB) *gorm.DB {
	b.Helper()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pgtest.SQLDB(b)}), &gorm.Config{
		DryRun: true, SkipDefaultTransaction: true, Logger: logger.Discard,
	})
	stand.Must(b, err)
	stand.Must(b, db.Use(gormlock.New()))
	return db
}

// TestVersionedUpdate_Allocations: to build a versioned update allocates no more than to build a plain one.
//
//nolint:paralleltest // allocations can only be counted while nobody else allocates
func TestVersionedUpdate_Allocations(t *testing.T) {
	db := dry(t)
	versioned := stand.Account{ID: 7, Balance: 100, Version: 70000}
	plain := stand.PlainAccount{ID: 7, Balance: 100, Version: 70000}
	with := func() { stand.Must(t, db.Model(&versioned).Update("balance", 90).Error) }
	without := func() { stand.Must(t, db.Model(&plain).Update("balance", 90).Error) }
	ours, theirs := math.Inf(1), math.Inf(1)
	for round := 0; round < 20 && (round < 3 || ours > theirs); round++ {
		ours, theirs = min(ours, testing.AllocsPerRun(100, with)), min(theirs, testing.AllocsPerRun(100, without))
	}
	if ours > theirs+allocationSlack {
		t.Errorf("%v allocations of a versioned update, %v of a plain one", ours, theirs)
	}
}

func BenchmarkVersionedUpdate(b *testing.B) {
	run := func(name string, write func(db *gorm.DB)) {
		b.Run(name, func(b *testing.B) {
			db := dry(b)
			b.ReportAllocs()
			for b.Loop() {
				write(db)
			}
		})
	}
	versioned := stand.Account{ID: 7, Balance: 100, Version: 70000}
	plain := stand.PlainAccount{ID: 7, Balance: 100, Version: 70000}
	run("update/plain", func(db *gorm.DB) { db.Model(&plain).Update("balance", 90) })
	run("update/versioned", func(db *gorm.DB) { db.Model(&versioned).Update("balance", 90) })
	run("save/plain", func(db *gorm.DB) { db.Save(&plain) })
	run("save/versioned", func(db *gorm.DB) { db.Save(&versioned) })
	run("delete/plain", func(db *gorm.DB) { db.Delete(&plain) })
	run("delete/versioned", func(db *gorm.DB) { db.Delete(&versioned) })
	run("create1000/plain", func(db *gorm.DB) {
		rows := make([]stand.PlainAccount, 1000)
		db.Create(&rows)
	})
	run("create1000/versioned", func(db *gorm.DB) {
		rows := make([]stand.Account, 1000)
		db.Create(&rows)
	})
	plains, versions := make([]stand.PlainAccount, 5000), make([]stand.Account, 5000)
	for i := range plains {
		plains[i].ID, versions[i].ID, versions[i].Version = int64(i+1), int64(i+1), int64(i+1)
	}
	run("update5000/plain", func(db *gorm.DB) { db.Model(&plains).Update("balance", 90) })
	run("update5000/versioned", func(db *gorm.DB) { db.Model(&versions).Update("balance", 90) })
}
