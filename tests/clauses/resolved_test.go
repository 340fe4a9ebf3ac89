package clauses_test

import (
	"errors"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A clause that is refused keeps no connection either beside those of dbresolver, which choose another pool, in whichever order they are given.
func TestRefusedClause_besideDbresolver(t *testing.T) {
	t.Parallel()
	type slip struct {
		ID      int64
		Version int64 `gormlock:"version"`
	}
	type order struct {
		gormlockFirst, prepared bool
		options                 []gormlock.Option
	}
	for setting, o := range map[string]order{
		"gormlock first":                     {gormlockFirst: true},
		"dbresolver first":                   {},
		"gormlock first, prepared":           {gormlockFirst: true, prepared: true},
		"dbresolver first, prepared":         {prepared: true},
		"gormlock first, plain transactions": {gormlockFirst: true, options: []gormlock.Option{gormlock.PlainTransactions()}},
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			opts := []pgtest.Option{pgtest.Schema(), pgtest.MaxConns(2)}
			if o.prepared {
				opts = append(opts, pgtest.PrepareStmt())
			}
			db := pgtest.Open(t, opts...)
			stand.Must(t, db.AutoMigrate(&slip{}))
			pool, err := db.DB()
			stand.Must(t, err)
			plugin := gormlock.New(o.options...)
			t.Cleanup(func() { _ = plugin.Close() })
			resolver := dbresolver.Register(dbresolver.Config{Sources: []gorm.Dialector{postgres.New(postgres.Config{Conn: pool})}}).
				Register(dbresolver.Config{Sources: []gorm.Dialector{postgres.New(postgres.Config{Conn: pool})}}, "other")
			if o.gormlockFirst {
				stand.Must(t, errors.Join(db.Use(plugin), db.Use(resolver)))
			} else {
				stand.Must(t, errors.Join(db.Use(resolver), db.Use(plugin)))
			}
			late := map[string]clause.Expression{
				"a lock":     gormlock.XactLock(gormlock.Key("customer"), gormlock.Timeout(-1)),
				"a row lock": gormlock.RowLock(gormlock.ForUpdate, gormlock.Timeout(-1)),
			}
			for name, refused := range late {
				for beside, given := range map[string][]clause.Expression{
					"Write behind": {refused, dbresolver.Write},
					"Write before": {dbresolver.Write, refused},
					"Read behind":  {refused, dbresolver.Read},
					"Read before":  {dbresolver.Read, refused},
					"Use behind":   {refused, dbresolver.Use("other"), dbresolver.Write},
					"Use before":   {dbresolver.Use("other"), refused},
					"both sides":   {dbresolver.Use("other"), refused, dbresolver.Write},
					"twice":        {refused, dbresolver.Write, refused, dbresolver.Write},
				} {
					for call, run := range map[string]func(db *gorm.DB) error{
						"Transaction": func(db *gorm.DB) error {
							return db.Transaction(func(*gorm.DB) error { t.Error("it runs"); return nil })
						},
						"gormlock.Transaction": func(db *gorm.DB) error {
							return gormlock.Transaction(db, func(*gorm.DB) error { t.Error("it runs"); return nil })
						},
						"Begin": func(db *gorm.DB) error {
							tx := db.Begin()
							if tx.Error == nil {
								tx.Rollback()
							}
							return tx.Error
						},
						"CreateInBatches": func(db *gorm.DB) error { return db.CreateInBatches(&[]slip{{}, {}, {}}, 2).Error },
						"Create":          func(db *gorm.DB) error { return db.Create(&[]slip{{}, {}}).Error },
						"Connection":      func(db *gorm.DB) error { return db.Connection(func(tx *gorm.DB) error { return tx.Error }) },
						"a session": func(db *gorm.DB) error {
							return db.Session(&gorm.Session{PrepareStmt: true}).Clauses(dbresolver.Write).Transaction(func(*gorm.DB) error { return nil })
						},
						"flat": func(*gorm.DB) error {
							flat := db.Session(&gorm.Session{DisableNestedTransaction: true})
							return flat.Clauses(given...).Transaction(func(*gorm.DB) error { t.Error("it runs"); return nil })
						},
						"with a context": func(db *gorm.DB) error {
							return db.WithContext(t.Context()).Transaction(func(*gorm.DB) error { t.Error("it runs"); return nil })
						},
						"flat behind": func(db *gorm.DB) error {
							return db.Session(&gorm.Session{DisableNestedTransaction: true}).Transaction(func(tx *gorm.DB) error { return tx.Create(&slip{}).Error })
						},
					} {
						err := run(db.Clauses(given...))
						if in := pool.Stats().InUse; in > 0 {
							t.Fatalf("%s, %s, %s: %d connections are in use after %v", name, beside, call, in, err)
						}
						if !errors.Is(err, gormlock.ErrOption) {
							t.Errorf("%s, %s, %s: %v", name, beside, call, err)
						}
					}
				}
			}
			var n int64
			if stand.Must(t, db.Model(&slip{}).Count(&n).Error); n > 0 {
				t.Errorf("%d rows are stored", n)
			}
		})
	}
}
