package locks_test

import (
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// TestG26_LocksAreThePrimarys: dbresolver sends reads to a replica, where a lock would exclude nobody; what carries a
// lock runs in a transaction, and that is on the primary.
func TestG26_LocksAreThePrimarys(t *testing.T) {
	t.Parallel()
	for name, install := range map[string]func(db *gorm.DB, resolver, plugin gorm.Plugin) error{
		"gormlock last": func(db *gorm.DB, resolver, plugin gorm.Plugin) error {
			if err := db.Use(resolver); err != nil {
				return err
			}
			return db.Use(plugin)
		},
		"dbresolver last": func(db *gorm.DB, resolver, plugin gorm.Plugin) error {
			if err := db.Use(plugin); err != nil {
				return err
			}
			return db.Use(resolver)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for mode, opts := range map[string][]pgtest.Option{"cached": nil, "PrepareStmt": {pgtest.PrepareStmt()}} {
				t.Run(mode, func(t *testing.T) {
					// The replica is a database without the tables: what goes there fails.
					resolver := dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{postgres.Open(pgtest.Database(t))}})
					s := newLookout(t)
					through, err := s.proxy.DSN(pgtest.SchemaDSN(t))
					if err != nil {
						t.Fatal(err)
					}
					plugin := gormlock.New()
					t.Cleanup(func() { _ = plugin.Close() })
					s.db = pgtest.Open(t, append(opts, pgtest.Through(through))...)
					if err := install(s.db, resolver, plugin); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() {
						_ = resolver.Call(func(pool gorm.ConnPool) error {
							if closer, ok := pool.(interface{ Close() error }); ok {
								return closer.Close()
							}
							return nil
						})
					})
					if s.db.First(&widget{}).Error == nil {
						t.Error("the control read the primary")
					}
					for _, c := range cells() {
						t.Run(c.name, func(t *testing.T) {
							s.holds(t, c, func(run func(*gorm.DB) error) error { return s.db.Transaction(run) })
							if c.reads {
								s.refuses(t, c, s.db)
							} else {
								s.holds(t, c, func(run func(*gorm.DB) error) error { return run(s.db) })
							}
						})
					}
				})
			}
		})
	}
}
