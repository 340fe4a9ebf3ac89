package costs_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/concern"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// The models that TestQuery_ofNoConcern reads, besides note: with a version, with something that has one, and with a hook, which may do anything.
type checkedNote struct {
	ID      int64
	Title   string
	Version int64 `gormlock:"version"`
}

type folder struct {
	ID            int64
	CheckedNoteID *int64
	CheckedNote   *checkedNote
}

type hookedNote struct {
	ID    int64
	Title string
}

func (*hookedNote) BeforeSave(*gorm.DB) error { return nil }

// TestQuery_ofNoConcern: gormlock lets pass the queries that it has nothing to do with, and no others.
func TestQuery_ofNoConcern(t *testing.T) {
	t.Parallel()
	type query struct {
		name string
		none bool
		run  func(db *gorm.DB) error
	}
	into := func(dest any, args ...any) func(*gorm.DB) error {
		return func(db *gorm.DB) error { return db.Find(dest, args...).Error }
	}
	queries := []query{
		{"by key", true, into(&[]note{}, 1)},
		{"into a struct", true, into(&note{}, 1)},
		{"into pointers", true, into(&[]*note{}, "title <> ?", "b")},
		{"First", true, func(db *gorm.DB) error { return db.First(&note{}).Error }},
		{"order and limit", true, func(db *gorm.DB) error {
			return db.Where("id > ?", 0).Or("title = ?", "x").Order("id").Limit(1).Find(&[]note{}).Error
		}},
		{"with statements that are prepared", true, func(db *gorm.DB) error {
			return db.Session(&gorm.Session{PrepareStmt: true}).Find(&[]note{}).Error
		}},
		{"built only", true, func(db *gorm.DB) error { return db.Session(&gorm.Session{DryRun: true}).Find(&[]note{}).Error }},
		{"the generics API", true, func(db *gorm.DB) error {
			_, err := gorm.G[note](db).Where("id = ?", 1).First(context.Background())
			return err
		}},
		{"of a model with a version", false, into(&[]checkedNote{})},
		{"of one that may hold such", false, into(&[]folder{})},
		{"of one with hooks", false, into(&[]hookedNote{})},
		{"into another type", false, func(db *gorm.DB) error { return db.Model(&note{}).Find(&[]struct{ ID int64 }{}).Error }},
		{"into maps", false, func(db *gorm.DB) error { return db.Model(&note{}).Find(&[]map[string]any{}).Error }},
		{"Count", false, func(db *gorm.DB) error { return db.Model(&note{}).Count(new(int64)).Error }},
		{"of a table by its name", false, func(db *gorm.DB) error { return db.Table("checked_notes").Find(&[]note{}).Error }},
		{"text", false, func(db *gorm.DB) error { return db.Raw("SELECT * FROM notes").Find(&[]note{}).Error }},
		{"Select", false, func(db *gorm.DB) error { return db.Select("id").Find(&[]note{}).Error }},
		{"Joins", false, func(db *gorm.DB) error { return db.Joins("JOIN folders f ON true").Find(&[]note{}).Error }},
		{"Group", false, func(db *gorm.DB) error { return db.Group("id").Having("true").Find(&[]note{}).Error }},
		{"a RETURNING, or any other clause", false, func(db *gorm.DB) error { return db.Clauses(clause.Returning{}).Find(&[]note{}).Error }},
		{"GORM's own lock", false, func(db *gorm.DB) error { return db.Clauses(clause.Locking{Strength: "SHARE"}).Find(&[]note{}).Error }},
		{"a version as a condition", false, func(db *gorm.DB) error {
			if err := db.Clauses(gormlock.ExpectVersion(1)).Find(&[]note{}).Error; err == nil {
				return fmt.Errorf("ExpectVersion was left out without an error")
			}
			return nil
		}},
		{"an advisory lock outside of a transaction", false, func(db *gorm.DB) error {
			if err := db.Scopes(gormlock.WithXactLock(pgtest.Key(t))).Find(&[]note{}).Error; err == nil {
				return fmt.Errorf("the lock was left out without an error")
			}
			return nil
		}},
		{"in a transaction", false, func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Find(&[]note{}).Error })
		}},
		{"in one of the *sql.DB", false, func(db *gorm.DB) error {
			return db.Connection(func(tx *gorm.DB) error { return tx.Find(&[]note{}).Error })
		}},
	}
	plugin := gormlock.New()
	t.Cleanup(func() { _ = plugin.Close() })
	db := pgtest.Open(t, pgtest.Plugin(plugin), pgtest.Schema())
	if err := db.AutoMigrate(&note{}, &checkedNote{}, &folder{}, &hookedNote{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Create(&note{Title: "a"}).Error; err != nil {
		t.Fatal(err)
	}
	var seen []bool
	err := db.Callback().Query().After("gormlock:before_read").Before("gorm:query").Register("test", func(db *gorm.DB) {
		seen = append(seen, concern.IsNone(db.Statement))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queries {
		seen = nil
		if err := q.run(db); err != nil {
			t.Errorf("%s: %v", q.name, err)
		} else if len(seen) != 1 || seen[0] != q.none {
			t.Errorf("%s: of no concern: %v, want %v", q.name, seen, q.none)
		}
	}
}

// TestQuery_ofNoConcernLeavesNothing: the next query in the chain is seen again, also after a panic.
func TestQuery_ofNoConcernLeavesNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	if err := db.AutoMigrate(&note{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Create(&note{Title: "a"}).Error; err != nil {
		t.Fatal(err)
	}
	chain := db.Where("id > ?", 0)
	if err := chain.Find(&[]note{}).Error; err != nil {
		t.Fatal(err)
	}
	if concern.IsNone(chain.Statement) {
		t.Error("a query that has ended is still marked")
	}
	panics := true
	err := db.Callback().Query().After("gormlock:before_read").Before("gorm:query").Register("test", func(*gorm.DB) {
		if panics {
			panic("of another plugin")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	chain = db.Where("id > ?", 0)
	func() {
		defer func() { _ = recover() }()
		_ = chain.Find(&[]note{})
		t.Error("no panic")
	}()
	panics = false
	again := chain.Session(&gorm.Session{}).Order("id") // which has the clauses
	rows, err := again.Rows()
	if err != nil {
		t.Fatal(err)
	}
	defer func(rows *sql.Rows) { _ = rows.Close() }(rows)
	if concern.IsNone(again.Statement) {
		t.Error("a query that a panic has ended is still marked")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
