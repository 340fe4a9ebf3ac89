package merges_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// sourced is a model with a source of its own, "second".
type sourced struct {
	ID      int64
	Title   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`

	fails string
}

var errSourced = errors.New("the hook of sourced fails")

func (s *sourced) AfterSave(tx *gorm.DB) error {
	switch s.fails {
	case "":
		return nil
	case "commit": // what a hook does by raw SQL counts too
		return tx.Exec("INSERT INTO deferreds (id, of) VALUES (1, 404)").Error
	}
	return errSourced
}

// central is a model of the database that is opened.
type central struct {
	ID      int64
	Title   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// sources are the databases behind one db, each with the same rows: the one that is opened, the source and the replica of sourced.
type sources struct {
	db                     *gorm.DB
	opened, second, behind *gorm.DB
	unseen                 bool // PlainTransactions
}

// titles are those of the rows of central, then of sourced, each in the opened database, the source and the replica.
func (s sources) titles(t *testing.T) string {
	t.Helper()
	var titles []string
	for _, table := range []string{"centrals", "sourceds"} {
		for _, db := range []*gorm.DB{s.opened, s.second, s.behind} {
			var title string
			stand.MustDo(t, db.Raw(fmt.Sprintf("SELECT title || '@' || version FROM %s WHERE id = 1", table)).Scan(&title))
			titles = append(titles, title)
		}
	}
	return strings.Join(titles, "|")
}

// reset gives all databases the same rows.
func (s sources) reset(t *testing.T) {
	t.Helper()
	for _, db := range []*gorm.DB{s.opened, s.second, s.behind} {
		for _, table := range []string{"sourceds", "centrals"} {
			stand.MustDo(t, db.Exec("DELETE FROM "+table))
			stand.MustDo(t, db.Exec(fmt.Sprintf("INSERT INTO %s (id, title, version) VALUES (1, 'base', 3)", table)))
		}
	}
}

// openSources opens them with the plugins in either order. Only the resolver knows the source.
func openSources(t *testing.T, resolverFirst bool, options []gormlock.Option, opts ...pgtest.Option) sources {
	t.Helper()
	var s sources
	dsns := []string{pgtest.SchemaDSN(t), pgtest.Database(t), pgtest.Database(t)}
	for i, db := range []**gorm.DB{&s.opened, &s.second, &s.behind} {
		*db = pgtest.Open(t, pgtest.Through(dsns[i]))
		stand.Must(t, (*db).AutoMigrate(&sourced{}, &central{}))
		stand.MustDo(t, (*db).Exec("CREATE TABLE IF NOT EXISTS deferreds (id int PRIMARY KEY, of int REFERENCES deferreds DEFERRABLE INITIALLY DEFERRED)"))
	}
	resolver := dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{postgres.Open(dsns[2])}}).
		Register(dbresolver.Config{Sources: []gorm.Dialector{postgres.Open(dsns[1])}, Replicas: []gorm.Dialector{postgres.Open(dsns[2])}}, "second", &sourced{})
	plugin := gormlock.New(options...)
	t.Cleanup(func() { _ = plugin.Close() })
	s.db = pgtest.Open(t, append(opts, pgtest.Through(dsns[0]))...)
	plugins := []gorm.Plugin{plugin, resolver}
	if resolverFirst {
		plugins = []gorm.Plugin{resolver, plugin}
	}
	for _, p := range plugins {
		stand.Must(t, s.db.Use(p))
	}
	t.Cleanup(func() {
		_ = resolver.Call(func(pool gorm.ConnPool) error {
			if closer, ok := pool.(io.Closer); ok {
				_ = closer.Close()
			}
			return nil
		})
	})
	return s
}

// untouched are the titles after reset.
const untouched = "base@3|base@3|base@3|base@3|base@3|base@3"

// eachSources runs a test with the plugins in either order, in each way to use them.
func eachSources(t *testing.T, test func(t *testing.T, s sources)) {
	t.Helper()
	type way struct {
		options []gormlock.Option
		opts    []pgtest.Option
		session gorm.Session
	}
	stand.Beside(t, map[string]way{
		"nothing":                            {},
		"PrepareStmt":                        {opts: []pgtest.Option{pgtest.PrepareStmt()}},
		"a session of PrepareStmt":           {session: gorm.Session{PrepareStmt: true}},
		"PlainTransactions":                  {options: []gormlock.Option{gormlock.PlainTransactions()}},
		"no default transactions":            {opts: []pgtest.Option{pgtest.SkipDefaultTransaction()}},
		"none, and PrepareStmt":              {opts: []pgtest.Option{pgtest.PrepareStmt(), pgtest.SkipDefaultTransaction()}},
		"PlainTransactions, and PrepareStmt": {options: []gormlock.Option{gormlock.PlainTransactions()}, opts: []pgtest.Option{pgtest.PrepareStmt()}},
	}, func(t *testing.T, w way) {
		for _, first := range []bool{false, true} {
			t.Run(fmt.Sprintf("the resolver first: %v", first), func(t *testing.T) {
				s := openSources(t, first, w.options, w.opts...)
				s.db, s.unseen = s.db.Session(&w.session), len(w.options) > 0
				test(t, s)
			})
		}
	})
}

// SaveMerged outside of a transaction writes where Save writes.
func TestSaveMerged_onTheSourceOfSave(t *testing.T) {
	t.Parallel()
	second := func(db *gorm.DB) *gorm.DB { return db.Clauses(dbresolver.Use("second")) }
	eachSources(t, func(t *testing.T, s sources) {
		for name, chain := range map[string]func(db *gorm.DB) *gorm.DB{
			"db":                      func(db *gorm.DB) *gorm.DB { return db },
			"WithContext":             func(db *gorm.DB) *gorm.DB { return db.WithContext(t.Context()) },
			"Use":                     second,
			"Use and Write":           func(db *gorm.DB) *gorm.DB { return second(db).Clauses(dbresolver.Write) },
			"a session of Use":        func(db *gorm.DB) *gorm.DB { return second(db).Session(&gorm.Session{}) },
			"Write":                   func(db *gorm.DB) *gorm.DB { return db.Clauses(dbresolver.Write) },
			"Read":                    func(db *gorm.DB) *gorm.DB { return db.Clauses(dbresolver.Read) },
			"Use of what is unknown":  func(db *gorm.DB) *gorm.DB { return db.Clauses(dbresolver.Use("third")) },
			"Use in a scope":          func(db *gorm.DB) *gorm.DB { return db.Scopes(second) },
			"Use in a scope of scope": func(db *gorm.DB) *gorm.DB { return db.Scopes(func(db *gorm.DB) *gorm.DB { return db.Scopes(second) }) },
			"Table":                   func(db *gorm.DB) *gorm.DB { return db.Table("centrals") },
		} {
			t.Run(name, func(t *testing.T) {
				s.reset(t)
				base, centralBase := sourced{ID: 1, Title: "base", Version: 3}, central{ID: 1, Title: "base", Version: 3}
				mine, centralMine := base, centralBase
				mine.Title, centralMine.Title = "mine", "mine"
				saved, centralSaved := mine, centralMine
				stand.Must(t, chain(s.db).Save(&saved).Error)
				want := s.titles(t)
				s.reset(t)
				stand.Must(t, gormlock.SaveMerged(chain(s.db), &mine, &base))
				stand.Equal(t, "where SaveMerged wrote", s.titles(t), want)
				stand.Equal(t, "mine", mine, sourced{ID: 1, Title: "mine", Version: 4})

				s.reset(t)
				stand.Must(t, chain(s.db).Save(&centralSaved).Error)
				want = s.titles(t)
				s.reset(t)
				stand.Must(t, gormlock.SaveMerged(chain(s.db), &centralMine, &centralBase))
				stand.Equal(t, "where SaveMerged wrote what has no source of its own", s.titles(t), want)
			})
		}
	})
}

// What SaveMerged rolls back there, its struct has not.
func TestSaveMerged_rollsBackOnASource(t *testing.T) {
	t.Parallel()
	eachSources(t, func(t *testing.T, s sources) {
		s.reset(t)
		base := sourced{ID: 1, Title: "base", Version: 3}
		for _, fails := range []string{"hook", "commit"} {
			mine := base
			mine.Title, mine.fails = "mine", fails
			if err := gormlock.SaveMerged(s.db, &mine, &base); err == nil || fails == "hook" && !errors.Is(err, errSourced) {
				t.Errorf("%s: %v", fails, err)
			}
			stand.Equal(t, fails, mine, sourced{ID: 1, Title: "mine", Version: 3, fails: fails})
			stand.Equal(t, fails, s.titles(t), untouched)
		}

		stand.MustDo(t, s.second.Exec("UPDATE sourceds SET title = 'theirs', version = 4"))
		mine := base
		mine.Title = "mine"
		mustConflict(t, gormlock.SaveMerged(s.db, &mine, &base))
		stand.Equal(t, "after a conflict", mine, sourced{ID: 1, Title: "mine", Version: 3})

		// In a transaction, the transaction decides.
		source := s.db.Clauses(dbresolver.Use("second"), dbresolver.Write)
		for name, within := range map[string]func(fn func(tx *gorm.DB) error) error{
			"Transaction":               func(fn func(tx *gorm.DB) error) error { return gormlock.Transaction(s.db, fn) },
			"Transaction on the source": func(fn func(tx *gorm.DB) error) error { return gormlock.Transaction(source, fn) },
			"db.Transaction":            func(fn func(tx *gorm.DB) error) error { return s.db.Transaction(fn) },
		} {
			s.reset(t)
			err := within(func(tx *gorm.DB) error {
				stand.Must(t, gormlock.SaveMerged(tx, &mine, &base))
				stand.Equal(t, name, mine.Title, "mine")
				return errSourced
			})
			if !errors.Is(err, errSourced) {
				t.Error(name, err)
			}
			if s.unseen && name == "db.Transaction" { // gormlock does not see its end
				stand.Equal(t, name, mine.Version, stand.Unread)
				mine.Version = 3
			}
			stand.Equal(t, name, mine, sourced{ID: 1, Title: "mine", Version: 3})
			stand.Equal(t, name, s.titles(t), untouched)
		}
		stand.Must(t, gormlock.SaveMerged(s.db, &mine, &base))
		stand.Equal(t, "at the end", s.titles(t), "base@3|base@3|base@3|base@3|mine@4|base@3")
	})
}

// On the only connection SaveMerged stays where it is, if that leads to the database of the row.
func TestSaveMerged_onTheOnlyConnection(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{false, true} {
		s := openSources(t, first, nil, pgtest.MaxConns(1))
		s.reset(t)
		stand.Must(t, s.db.Connection(func(c *gorm.DB) error {
			cbase := central{ID: 1, Title: "base", Version: 3}
			cmine := cbase
			cmine.Title = "mine"
			if err := gormlock.SaveMerged(c.Session(&gorm.Session{}), &cmine, &cbase); err != nil {
				return err
			}
			base := sourced{ID: 1, Title: "base", Version: 3}
			mine := base
			mine.Title = "mine"
			return gormlock.SaveMerged(c.Session(&gorm.Session{}), &mine, &base)
		}))
		stand.Equal(t, "rows", s.titles(t), "mine@4|base@3|base@3|base@3|mine@4|base@3")
	}
}

// Without a resolver nothing is asked or made.
func TestSaveMerged_withoutAResolver(t *testing.T) { //nolint:paralleltest // it counts allocations
	for _, opts := range [][]pgtest.Option{nil, {pgtest.PrepareStmt()}} {
		db := stand.Versioned(t, []any{&sourced{}}, opts...)
		row := &sourced{}
		if n := testing.AllocsPerRun(10, func() {
			if journal.ForWrite(db, row) != db {
				t.Error("another db")
			}
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
	}
	// Replicas alone change nothing: the transaction begins on the pool of gormlock.
	for _, first := range []bool{false, true} {
		db := pgtest.Open(t, pgtest.Schema(), pgtest.Config(func(c *gorm.Config) { c.Logger = logger.Discard }))
		resolver, plugin := dbresolver.Register(dbresolver.Config{}), gormlock.New()
		plugins := []gorm.Plugin{plugin, resolver}
		if first {
			plugins = []gorm.Plugin{resolver, plugin}
		}
		for _, p := range plugins {
			stand.Must(t, db.Use(p))
		}
		for _, chain := range []*gorm.DB{db, db.Clauses(dbresolver.Write)} {
			if got := journal.ForWrite(chain, &sourced{}).Statement.ConnPool; got != db.ConnPool {
				t.Errorf("%T", got)
			}
		}
	}
}
