package transactions_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type plainRow struct {
	ID   int64
	Name string
}

type taggedRow struct {
	ID      int64
	Version int64 `gormlock:"version"`
}

type parentOfTagged struct {
	ID    int64
	Child taggedRow `gorm:"foreignKey:ID"`
}

type parentOfParent struct {
	ID     int64
	Middle *parentOfTagged `gorm:"foreignKey:ID"`
	Self   *parentOfParent `gorm:"foreignKey:ID"`
}

type hookedRow struct{ ID int64 }

func (*hookedRow) BeforeDelete(*gorm.DB) error { return nil }

func TestNeedsJournal(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()))
	for _, c := range []struct {
		model any
		want  bool
	}{
		{&plainRow{}, false}, {&taggedRow{}, true}, {&parentOfTagged{}, true}, {&parentOfParent{}, true}, {&hookedRow{}, true},
	} {
		stmt := &gorm.Statement{DB: db}
		if err := stmt.Parse(c.model); err != nil {
			t.Fatal(err)
		}
		if got := model.NeedsJournal(db, stmt.Schema); got != c.want {
			t.Errorf("%T: %v", c.model, got)
		}
	}
	if model.NeedsJournal(db, nil) {
		t.Error("no model needs no journal")
	}
}

// preparing is a model whose hook opens a session with prepared statements, in the transaction of the create.
type preparing struct {
	ID   int64
	Name string
	Seen int64
}

func (p *preparing) BeforeCreate(tx *gorm.DB) error {
	return tx.Session(&gorm.Session{NewDB: true, PrepareStmt: true}).Model(&preparing{}).Where("name <> ?", "nobody").Count(&p.Seen).Error
}

// TestV1_PreparedStatementsAcrossTransactions: what was prepared outside, in another transaction or in a hook runs in
// every transaction, on a pool of one connection (G18).
func TestV1_PreparedStatementsAcrossTransactions(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]pgtest.Option{
		"session": {pgtest.MaxConns(1)},
		"config":  {pgtest.MaxConns(1), pgtest.PrepareStmt()},
		"simple":  {pgtest.MaxConns(1), pgtest.PrepareStmt(), pgtest.SimpleProtocol()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := gormlock.New()
			t.Cleanup(func() { _ = p.Close() })
			db := pgtest.Open(t, append(opts, pgtest.Plugin(p), pgtest.Schema())...)
			if err := db.AutoMigrate(&preparing{}); err != nil {
				t.Fatal(err)
			}
			session := db.Session(&gorm.Session{PrepareStmt: true})
			count := func(db *gorm.DB) int64 {
				t.Helper()
				var n int64
				if err := db.Model(&preparing{}).Where("name <> ?", "nobody").Count(&n).Error; err != nil {
					t.Fatal(err)
				}
				return n
			}
			for i := range int64(3) {
				row := preparing{Name: fmt.Sprint(i)}
				if err := db.Create(&row).Error; err != nil {
					t.Fatal(err)
				}
				if row.Seen != i {
					t.Errorf("the hook saw %d rows of %d", row.Seen, i)
				}
				if n := count(session); n != i+1 {
					t.Errorf("%d rows outside", n)
				}
				for range 2 {
					err := session.Transaction(func(tx *gorm.DB) error {
						if n := count(tx); n != i+1 {
							t.Errorf("%d rows inside", n)
						}
						if n := count(tx.Session(&gorm.Session{PrepareStmt: true})); n != i+1 {
							t.Errorf("%d rows in a session inside", n)
						}
						return nil
					})
					if err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// TestG26_ImplicitTransactionsOnAResolversPool: a source that dbresolver picked before the plugin was installed has
// locks and a journal as well.
func TestG26_ImplicitTransactionsOnAResolversPool(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"gormlock", "dbresolver"} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			db := pgtest.Open(t, pgtest.Schema())
			resolver := dbresolver.Register(dbresolver.Config{})
			for _, plugin := range map[string][]gorm.Plugin{"gormlock": {gormlock.New(), resolver}, "dbresolver": {resolver, gormlock.New()}}[first] {
				if err := db.Use(plugin); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.AutoMigrate(&hooked{}); err != nil {
				t.Fatal(err)
			}
			var undone []string
			key := pgtest.Key(t)
			row := &hooked{t: t, undone: &undone, fails: true}
			if err := db.Scopes(gormlock.WithXactLock(key)).Create(row).Error; !errors.Is(err, errUndo) {
				t.Fatal(err)
			}
			wantUndone(t, undone, "a")
		})
	}
}

// TestJournalOnSQLite: what needs no PostgreSQL works where people run their unit tests.
func TestJournalOnSQLite(t *testing.T) {
	t.Parallel()
	db := stand.OnSQLite(t, []any{&plainRow{}})
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	var undone []string
	err = gormlock.Transaction(db, func(tx *gorm.DB) error {
		note(t, tx, &undone, "outer")
		if err := tx.Create(&plainRow{Name: "kept"}).Error; err != nil {
			return err
		}
		_ = tx.Transaction(func(tx *gorm.DB) error {
			note(t, tx, &undone, "inner")
			return errors.Join(tx.Create(&plainRow{Name: "dropped"}).Error, errUndo)
		})
		wantUndone(t, undone, "inner")
		return tx.Session(&gorm.Session{PrepareStmt: true}).Create(&plainRow{Name: "prepared"}).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	if err := db.Model(&plainRow{}).Count(&n).Error; err != nil || n != 2 {
		t.Errorf("%d rows, %v", n, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		defer cancel()
		return tx.Create(&plainRow{Name: "too late"}).Error
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, err := range []error{
		db.Scopes(gormlock.WithXactLock(gormlock.Key("x"))).Create(&plainRow{}).Error,
		gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(gormlock.Key("x"))),
		db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, nil) }),
	} {
		if !errors.Is(err, gormlock.ErrNotPostgres) && err.Error() != "gormlock: invalid lock key: no keys to lock" {
			t.Error(err)
		}
	}
	if err := db.Model(&plainRow{}).Count(&n).Error; err != nil || n != 2 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// TestV1_GenuineTx: what River and others assert about a transaction of GORM's goes on holding.
func TestV1_GenuineTx(t *testing.T) {
	t.Parallel()
	p := gormlock.New()
	t.Cleanup(func() { _ = p.Close() }) // a statement was prepared
	db := pgtest.Open(t, pgtest.Plugin(p))
	for name, begin := range map[string]func(func(*gorm.DB) error) error{
		"db.Transaction": func(fn func(*gorm.DB) error) error { return db.Transaction(fn) },
		"Transaction": func(fn func(*gorm.DB) error) error {
			return gormlock.Transaction(db, fn, gormlock.Locking(pgtest.Key(t)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := begin(func(tx *gorm.DB) error {
				plain, ok := tx.Statement.ConnPool.(*sql.Tx)
				if !ok {
					t.Fatalf("%T", tx.Statement.ConnPool)
				}
				var got []int
				stmt, err := plain.Prepare("SELECT generate_series(1, $1::int)")
				if err != nil {
					return err
				}
				defer func() { _ = stmt.Close() }()
				rows, err := stmt.Query(3)
				if err != nil {
					return err
				}
				defer func() { _ = rows.Close() }()
				for rows.Next() {
					var n int
					if err := rows.Scan(&n); err != nil {
						return err
					}
					got = append(got, n)
				}
				if len(got) != 3 {
					t.Errorf("read %v", got)
				}
				return rows.Err()
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
