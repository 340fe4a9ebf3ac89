package mariadb_test

import (
	"fmt"
	"io"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// errand is a row of a database that only GORM's dbresolver knows.
type errand struct {
	ID      int64
	State   string `gorm:"size:20"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// A claim is made on the database where an update of its rows would run, in a transaction of its own or the caller's.
func TestClaim_onASource(t *testing.T) {
	t.Parallel()
	dsns := []string{mariaserver.DSN(t), mariaserver.DSN(t)}
	opened, source := mariaserver.OpenDSN(t, dsns[0], []any{&errand{}}), mariaserver.OpenDSN(t, dsns[1], []any{&errand{}})
	for _, first := range []bool{false, true} {
		for _, prepares := range []bool{false, true} {
			what := fmt.Sprintf("the resolver first: %t, PrepareStmt: %t", first, prepares)
			db, err := gorm.Open(mysql.Open(dsns[0]), &gorm.Config{Logger: logger.Discard, PrepareStmt: prepares})
			stand.Must(t, err)
			plugin := gormlock.New()
			resolver := dbresolver.Register(dbresolver.Config{Sources: []gorm.Dialector{mysql.Open(dsns[1])}}, "second", &errand{})
			plugins := []gorm.Plugin{plugin, resolver}
			if first {
				plugins = []gorm.Plugin{resolver, plugin}
			}
			for _, p := range plugins {
				stand.Must(t, db.Use(p))
			}
			for _, database := range []*gorm.DB{opened, source} {
				stand.MustDo(t, database.Exec("DELETE FROM errands"))
				stand.MustDo(t, database.Exec("INSERT INTO errands (id, state) VALUES (1, 'ready'), (2, 'ready')"))
			}
			claim := func(db *gorm.DB) {
				t.Helper()
				claimed, err := gormlock.Claim[errand](db, 1, map[string]any{"state": "running"}, func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready").Order("id") })
				if err != nil || len(claimed) != 1 {
					t.Errorf("%s: %v, %v", what, claimed, err)
				}
			}
			claim(db)
			stand.Must(t, gormlock.Transaction(db.Clauses(dbresolver.Use("second"), dbresolver.Write), func(tx *gorm.DB) error { claim(tx); return nil }))
			var here, there int64
			stand.MustDo(t, opened.Model(&errand{}).Where("state = 'running'").Count(&here))
			stand.MustDo(t, source.Model(&errand{}).Where("state = 'running'").Count(&there))
			if here != 0 || there != 2 {
				t.Errorf("%s: claimed %d rows of the opened database and %d of the source", what, here, there)
			}
			stand.Must(t, plugin.Close())
			pool, err := db.DB()
			stand.Must(t, err)
			stand.Must(t, pool.Close())
			stand.Must(t, resolver.Call(func(pool gorm.ConnPool) error {
				if closer, ok := pool.(io.Closer); ok {
					_ = closer.Close()
				}
				return nil
			}))
		}
	}
}
