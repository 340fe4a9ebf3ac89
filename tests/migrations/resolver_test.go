package migrations_test

import (
	"context"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
	"github.com/gormlock/gormlock/work"
)

func handled(context.Context, *errand) error { return nil }

type errand struct {
	work.Job
	Text string
}

// What a program finds at start is the source's: a replica may have replayed no migration yet. What makes something goes there too.
func TestResolver_startIsOnTheSource(t *testing.T) {
	t.Parallel()
	for name, inOrder := range map[string]func(resolver, plugin gorm.Plugin) []gorm.Plugin{
		"gormlock last":   func(resolver, plugin gorm.Plugin) []gorm.Plugin { return []gorm.Plugin{resolver, plugin} },
		"dbresolver last": func(resolver, plugin gorm.Plugin) []gorm.Plugin { return []gorm.Plugin{plugin, resolver} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replica := pgtest.Open(t, pgtest.Through(pgtest.Database(t)))
			pool, err := replica.DB()
			stand.Must(t, err)
			plugin := gormlock.New()
			t.Cleanup(func() { _ = plugin.Close() })
			db := pgtest.Open(t, pgtest.Schema())
			for _, p := range inOrder(dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{postgres.New(postgres.Config{Conn: pool})}}), plugin) {
				stand.Must(t, db.Use(p))
			}
			stand.Must(t, gormlock.MigrateAll(db))
			stand.Must(t, gormlock.AutoMigrate(db, &stand.Account{}))
			stand.Must(t, work.Migrate(db, &errand{}))
			if db.First(&stand.Account{}).Error == nil || db.Exec("SELECT * FROM accounts WHERE id = 1").Error == nil {
				t.Error("the control read the source")
			}

			stand.Must(t, gormlock.Check(db, &stand.Account{}))
			w, err := work.New(db, handled)
			stand.Must(t, err)
			stand.Must(t, work.Enqueue(db, &errand{}))
			if n, err := w.Drain(t.Context()); err != nil || n != 1 {
				t.Error(n, err)
			}
			if _, err := work.Stats(t.Context(), db, &errand{}); err == nil {
				t.Error("the control counted on the source")
			}
			if _, err := work.Stats(t.Context(), db.Clauses(dbresolver.Write), &errand{}); err != nil {
				t.Error(err)
			}

			stand.Must(t, replica.Migrator().CreateTable(&stand.Account{})) // so that a trigger could be made there
			stand.Must(t, db.Exec(gormlock.VersionTrigger("accounts", "version")).Error)
			var made int64
			stand.Must(t, db.Clauses(dbresolver.Write).Table("pg_trigger").Where("tgrelid = 'accounts'::regclass").Count(&made).Error)
			stand.Equal(t, "triggers on the source", made, 1)
			stand.Must(t, replica.Table("pg_trigger").Where("tgrelid = 'accounts'::regclass").Count(&made).Error)
			stand.Equal(t, "triggers on the replica", made, 0)
		})
	}
}
