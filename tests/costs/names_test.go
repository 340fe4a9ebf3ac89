package costs_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

type shelf struct {
	ID      int64
	Place   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// Only a transaction that writes one model by two names asks which tables they are, for all of them at once, and each transaction anew. It does
// not ask of one that nothing is to be compared with.
func TestTableNames_costNoRoundTrip(t *testing.T) {
	t.Parallel()
	proxy, dsn := pgtest.Tap(t, pgtest.DSN(t))
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.MaxConns(1), pgtest.Plugin(gormlock.New()))
	for _, name := range []string{"shelves", "shelves_old"} {
		if err := db.Exec("DROP TABLE IF EXISTS " + name + "; CREATE TABLE " + name + " (id bigserial PRIMARY KEY, place text, version bigint NOT NULL DEFAULT 1); INSERT INTO " + name + " (id) VALUES (1), (2)").Error; err != nil {
			t.Fatal(err)
		}
	}
	by := func(table string, id int64) func(tx *gorm.DB) error {
		return func(tx *gorm.DB) error {
			if table != "" {
				tx = tx.Table(table)
			}
			return tx.Model(&shelf{ID: id}).Clauses(gormlock.IgnoreVersion()).Update("place", "here").Error
		}
	}
	reads := func(table string) func(tx *gorm.DB) error {
		return func(tx *gorm.DB) error { return tx.Table(table).Find(&[]shelf{}).Error }
	}
	trips := func(statements ...func(tx *gorm.DB) error) int {
		proxy.Reset()
		if err := db.Transaction(func(tx *gorm.DB) error {
			for _, execute := range statements {
				if err := execute(tx); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return proxy.RoundTrips()
	}
	for _, way := range []struct {
		what       string
		statements []func(tx *gorm.DB) error
		more       int
	}{
		{"the model's own name", []func(*gorm.DB) error{by("", 1), by("", 2)}, 0},
		{"another name", []func(*gorm.DB) error{by("shelves_old", 1), by("shelves_old", 2)}, 0},
		{"an alias, in large letters", []func(*gorm.DB) error{by("", 1), by("SHELVES AS s", 2)}, 0},
		{"reads by two names", []func(*gorm.DB) error{reads("shelves"), reads("shelves_old")}, 0},
		{"reads by two names after a write", []func(*gorm.DB) error{by("", 1), reads("shelves_old")}, 0},
		{"two names", []func(*gorm.DB) error{by("", 1), by("shelves_old", 2)}, 2}, // it prepares the question
		{"two names again", []func(*gorm.DB) error{by("shelves_old", 1), by("", 2)}, 1},
		{"two names, each twice", []func(*gorm.DB) error{by("", 1), by("shelves_old", 1), by("", 2), by("shelves_old", 2)}, 1},
		{"three names", []func(*gorm.DB) error{by("", 1), by("shelves_old", 2), by("shelves AS s", 2), by("ONLY shelves", 2)}, 2 + 1},
		{"a sub-query and a name", []func(*gorm.DB) error{reads("(SELECT * FROM shelves_old) AS s"), by("", 1)}, 0},
	} {
		for _, execute := range way.statements {
			trips(execute) // what it prepares
		}
		const begin, commit = 1, 1
		if made, want := trips(way.statements...), begin+len(way.statements)+commit+way.more; made != want {
			t.Errorf("%s: %d round trips, not %d", way.what, made, want)
		}
	}
}
