package locks_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// operation is one thing that a GORM user does with a statement that carries a lock.
type operation struct {
	name string
	// reads begins with a statement for which GORM opens no transaction.
	reads bool
	// locks is how often the lock is asked for inside a transaction: once for each statement that carries it.
	locks int
	run   func(db *gorm.DB, w *widget) error
}

var errInner = errors.New("the inner one fails")

var operations = []operation{
	{name: "create", locks: 1, run: func(db *gorm.DB, _ *widget) error { return db.Create(&widget{Name: "new"}).Error }},
	{name: "create slice", locks: 1, run: func(db *gorm.DB, _ *widget) error { return db.Create([]widget{{Name: "1"}, {Name: "2"}}).Error }},
	{name: "create map", locks: 1, run: func(db *gorm.DB, _ *widget) error {
		return db.Model(&widget{}).Create(map[string]any{"name": "new"}).Error
	}},
	// G14: what is saved with the statement takes no second lock.
	{name: "create with associations", locks: 1, run: func(db *gorm.DB, _ *widget) error {
		return db.Create(&widget{Name: "new", Maker: &widgetMaker{Name: "m"}, Parts: []widgetPart{{Name: "a"}, {Name: "b"}}}).Error
	}},
	{name: "save with all associations", locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(w).Error
	}},
	// G3: each batch is a statement that carries the lock.
	{name: "CreateInBatches", locks: 2, run: func(db *gorm.DB, _ *widget) error {
		return db.CreateInBatches([]widget{{Name: "1"}, {Name: "2"}, {Name: "3"}}, 2).Error
	}},
	{name: "CreateInBatches of one batch", locks: 1, run: func(db *gorm.DB, _ *widget) error {
		return db.CreateInBatches([]widget{{Name: "1"}, {Name: "2"}}, 2).Error
	}},
	{name: "upsert", locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&widget{ID: w.ID, Name: "again"}).Error
	}},
	{name: "save new", locks: 1, run: func(db *gorm.DB, _ *widget) error { return db.Save(&widget{Name: "new"}).Error }},
	{name: "save", locks: 1, run: func(db *gorm.DB, w *widget) error { w.N++; return db.Omit(clause.Associations).Save(w).Error }},
	// G5: an update that finds no row becomes an insert, a second statement.
	{name: "save of a row that is gone", locks: 2, run: func(db *gorm.DB, w *widget) error {
		return db.Save(&widget{ID: w.ID + 1_000_000, Name: "gone"}).Error
	}},
	{name: "save slice", locks: 1, run: func(db *gorm.DB, w *widget) error { return db.Save([]widget{{ID: w.ID, Name: "x"}}).Error }},
	{name: "update", locks: 1, run: func(db *gorm.DB, w *widget) error { return db.Model(w).Update("n", 1).Error }},
	{name: "updates struct", locks: 1, run: func(db *gorm.DB, w *widget) error { return db.Model(w).Updates(widget{N: 2}).Error }},
	{name: "updates map", locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.Model(w).Updates(map[string]any{"n": 3}).Error
	}},
	{name: "update column", locks: 1, run: func(db *gorm.DB, w *widget) error { return db.Model(w).UpdateColumn("n", 4).Error }},
	{name: "update many", locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.Model(&widget{}).Where("id = ?", w.ID).Update("n", 5).Error
	}},
	{name: "delete", locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.Delete(&widgetPart{}, w.Parts[0].ID).Error
	}},
	{name: "delete with associations", locks: 1, run: func(db *gorm.DB, w *widget) error { return db.Select("Parts").Delete(w).Error }},
	{name: "exec", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.Exec("update widgets set n = 6 where id = ?", w.ID).Error
	}},
	{name: "first", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error { return db.First(&widget{}, w.ID).Error }},
	{name: "take", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error { return db.Take(&widget{}, w.ID).Error }},
	{name: "last", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error { return db.Last(&widget{}, w.ID).Error }},
	{name: "find", reads: true, locks: 1, run: func(db *gorm.DB, _ *widget) error { return db.Limit(2).Find(&[]widget{}).Error }},
	{name: "find maps", reads: true, locks: 1, run: func(db *gorm.DB, _ *widget) error {
		return db.Model(&widget{}).Limit(1).Find(&[]map[string]any{}).Error
	}},
	{name: "count", reads: true, locks: 1, run: func(db *gorm.DB, _ *widget) error {
		var n int64
		return db.Model(&widget{}).Count(&n).Error
	}},
	{name: "pluck", reads: true, locks: 1, run: func(db *gorm.DB, _ *widget) error {
		return db.Model(&widget{}).Limit(1).Pluck("name", &[]string{}).Error
	}},
	{name: "scan", reads: true, locks: 1, run: func(db *gorm.DB, _ *widget) error {
		return db.Table("widgets").Limit(1).Scan(&[]widget{}).Error
	}},
	{name: "row", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error {
		var n int
		return db.Model(w).Select("n").Row().Scan(&n)
	}},
	{name: "rows", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error {
		rows, err := db.Model(&widget{}).Where("id = ?", w.ID).Rows()
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		return errors.Join(rows.Err(), rows.Close())
	}},
	{name: "raw scan", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.Raw("select * from widgets where id = ?", w.ID).Scan(&widget{}).Error
	}},
	{name: "raw row", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error {
		var n int
		return db.Raw("select n from widgets where id = ?", w.ID).Row().Scan(&n)
	}},
	// G4: each batch is a query that carries the lock.
	{name: "FindInBatches", reads: true, locks: 2, run: func(db *gorm.DB, w *widget) error {
		return db.Where("widget_id = ?", w.ID).FindInBatches(&[]widgetPart{}, 1, func(tx *gorm.DB, batch int) error {
			if batch == 2 {
				return errInner
			}
			return nil
		}).Error
	}},
	{name: "FirstOrCreate that finds", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.FirstOrCreate(&widget{}, widget{ID: w.ID}).Error
	}},
	{name: "FirstOrCreate that creates", reads: true, locks: 2, run: func(db *gorm.DB, w *widget) error {
		return db.FirstOrCreate(&widget{}, widget{Name: fmt.Sprint("not ", w.ID)}).Error
	}},
	{name: "FirstOrInit", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.FirstOrInit(&widget{}, widget{ID: w.ID}).Error
	}},
	// G20: what is preloaded takes no second lock.
	{name: "preload", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.Preload("Maker").Preload("Parts").First(&widget{}, w.ID).Error
	}},
	{name: "joins", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.Joins("Maker").First(&widget{}, w.ID).Error
	}},
	{name: "association append", locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.Model(w).Association("Parts").Append(&widgetPart{Name: "c"})
	}},
	{name: "association replace", locks: 2, run: func(db *gorm.DB, w *widget) error {
		return db.Model(w).Association("Parts").Replace(&widgetPart{Name: "d"})
	}},
	{name: "association delete", locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.Model(w).Association("Maker").Delete(w.Maker)
	}},
	{name: "association clear", locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.Model(w).Association("Maker").Clear()
	}},
	{name: "association find", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error {
		return db.Model(w).Association("Parts").Find(&[]widgetPart{})
	}},
	{name: "association count", reads: true, locks: 1, run: func(db *gorm.DB, w *widget) error {
		a := db.Model(w).Association("Parts")
		a.Count()
		return a.Error
	}},
}

// generic is an operation of GORM's generics API. Not all doors to it create.
type generic struct {
	name  string
	reads bool
	locks int
	any   func(ctx context.Context, g gorm.ChainInterface[widget], w *widget) error
	first func(ctx context.Context, g gorm.Interface[widget], w *widget) error
}

var generics = []generic{
	{name: "create", locks: 1, first: func(ctx context.Context, g gorm.Interface[widget], _ *widget) error {
		return g.Create(ctx, &widget{Name: "new"})
	}},
	{name: "CreateInBatches", locks: 2, first: func(ctx context.Context, g gorm.Interface[widget], _ *widget) error {
		return g.CreateInBatches(ctx, &[]widget{{Name: "1"}, {Name: "2"}}, 1)
	}},
	{name: "set create", locks: 1, first: func(ctx context.Context, g gorm.Interface[widget], _ *widget) error {
		return g.Set(clause.Assignment{Column: clause.Column{Name: "name"}, Value: "set"}).Create(ctx)
	}},
	{name: "raw", reads: true, locks: 1, first: func(ctx context.Context, g gorm.Interface[widget], w *widget) error {
		_, err := g.Raw("select * from widgets where id = ?", w.ID).First(ctx)
		return err
	}},
	{name: "exec", reads: true, locks: 1, first: func(ctx context.Context, g gorm.Interface[widget], w *widget) error {
		return g.Exec(ctx, "update widgets set n = 7 where id = ?", w.ID)
	}},
	{name: "update", locks: 1, any: func(ctx context.Context, g gorm.ChainInterface[widget], w *widget) error {
		_, err := g.Where("id = ?", w.ID).Update(ctx, "n", 1)
		return err
	}},
	{name: "updates", locks: 1, any: func(ctx context.Context, g gorm.ChainInterface[widget], w *widget) error {
		_, err := g.Where("id = ?", w.ID).Updates(ctx, widget{N: 2})
		return err
	}},
	{name: "set update", locks: 1, any: func(ctx context.Context, g gorm.ChainInterface[widget], w *widget) error {
		_, err := g.Where("id = ?", w.ID).Set(clause.Assignment{Column: clause.Column{Name: "n"}, Value: 3}).Update(ctx)
		return err
	}},
	{name: "delete", locks: 1, any: func(ctx context.Context, g gorm.ChainInterface[widget], _ *widget) error {
		_, err := g.Where("id < 0").Delete(ctx)
		return err
	}},
	{name: "first", reads: true, locks: 1, any: func(ctx context.Context, g gorm.ChainInterface[widget], w *widget) error {
		_, err := g.Where("id = ?", w.ID).First(ctx)
		return err
	}},
	{name: "find", reads: true, locks: 1, any: func(ctx context.Context, g gorm.ChainInterface[widget], _ *widget) error {
		_, err := g.Limit(1).Find(ctx)
		return err
	}},
	{name: "count", reads: true, locks: 1, any: func(ctx context.Context, g gorm.ChainInterface[widget], _ *widget) error {
		_, err := g.Count(ctx, "*")
		return err
	}},
	{name: "scan", reads: true, locks: 1, any: func(ctx context.Context, g gorm.ChainInterface[widget], _ *widget) error {
		return g.Limit(1).Scan(ctx, &[]widget{})
	}},
	{name: "row", reads: true, locks: 1, any: func(ctx context.Context, g gorm.ChainInterface[widget], w *widget) error {
		var n int
		return g.Select("n").Where("id = ?", w.ID).Row(ctx).Scan(&n)
	}},
	{name: "rows", reads: true, locks: 1, any: func(ctx context.Context, g gorm.ChainInterface[widget], w *widget) error {
		rows, err := g.Where("id = ?", w.ID).Rows(ctx)
		if err != nil {
			return err
		}
		return rows.Close()
	}},
	{name: "FindInBatches", reads: true, locks: 1, any: func(ctx context.Context, g gorm.ChainInterface[widget], w *widget) error {
		return g.Where("id = ?", w.ID).FindInBatches(ctx, 5, func([]widget, int) error { return nil })
	}},
}

// cell is an operation through one door.
type cell struct {
	name  string
	reads bool
	locks int
	// run puts the lock on statements of db; a nil lock runs them without.
	run func(db *gorm.DB, w *widget, key lockkey.Key) error
}

// cells are all operations through all the doors that put a lock on a statement.
func cells() (all []cell) {
	for _, op := range operations {
		all = append(all,
			cell{"Scopes/" + op.name, op.reads, op.locks, func(db *gorm.DB, w *widget, key lockkey.Key) error {
				return op.run(db.Scopes(gormlock.WithXactLock(key)), w)
			}},
			cell{"Clauses/" + op.name, op.reads, op.locks, func(db *gorm.DB, w *widget, key lockkey.Key) error {
				return op.run(db.Clauses(gormlock.XactLock(key)), w)
			}})
	}
	for _, op := range generics {
		// G19
		all = append(all, cell{"G/" + op.name, op.reads, op.locks, func(db *gorm.DB, w *widget, key lockkey.Key) error {
			g := gorm.G[widget](db, gormlock.XactLock(key))
			if op.first != nil {
				return op.first(context.Background(), g, w)
			}
			return op.any(context.Background(), g.Where("true"), w)
		}})
		if op.any != nil {
			all = append(all, cell{"G.Scopes/" + op.name, op.reads, op.locks, func(db *gorm.DB, w *widget, key lockkey.Key) error {
				return op.any(context.Background(), gorm.G[widget](db).Scopes(gormlock.XactLock(key).ModifyStatement), w)
			}})
		}
	}
	return all
}

type mode struct {
	name    string
	opts    []pgtest.Option
	session *gorm.Session
}

var modes = []mode{
	{name: "cached"},
	{name: "simple protocol", opts: []pgtest.Option{pgtest.SimpleProtocol()}},
	{name: "PrepareStmt", opts: []pgtest.Option{pgtest.PrepareStmt()}}, // G18
	{name: "PrepareStmt session", session: &gorm.Session{PrepareStmt: true}},
}

func (m mode) lookout(t *testing.T, opts ...pgtest.Option) *lookout {
	s := newLookout(t, append(opts, m.opts...)...)
	if m.session != nil {
		s.db = s.db.Session(m.session)
	}
	return s
}

// eachMode runs a test in every mode, each beside the others.
func eachMode(t *testing.T, test func(t *testing.T, s *lookout), opts ...pgtest.Option) {
	t.Helper()
	beside(t, modes, func(t *testing.T, m mode) { test(t, m.lookout(t, opts...)) })
}

// beside runs a test in modes, each beside the others.
func beside(t *testing.T, modes []mode, test func(t *testing.T, m mode)) {
	t.Helper()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			test(t, m)
		})
	}
}

// TestConformance runs every operation through every door that puts a lock on a statement, in every mode of talking to
// the server. In a transaction, GORM's own or the caller's, the lock is held whenever the statement reaches the server
// and free when the transaction is over; without one nothing is executed. G2 G3 G4 G5 G14 G18 G19 G20 V7
func TestConformance(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, s *lookout) {
		for _, c := range cells() {
			t.Run(c.name, func(t *testing.T) {
				t.Run("implicit", func(t *testing.T) {
					if c.reads {
						s.refuses(t, c, s.db)
					} else {
						s.holds(t, c, func(run func(*gorm.DB) error) error { return run(s.db) })
					}
				})
				t.Run("explicit", func(t *testing.T) {
					s.holds(t, c, func(run func(*gorm.DB) error) error { return s.db.Transaction(run) })
				})
				t.Run("session without default transaction", func(t *testing.T) {
					s.refuses(t, c, s.db.Session(&gorm.Session{SkipDefaultTransaction: true}))
				})
			})
		}
	})
	t.Run("config without default transaction", func(t *testing.T) {
		t.Parallel()
		s := newLookout(t, pgtest.SkipDefaultTransaction())
		for _, c := range cells() {
			t.Run(c.name, func(t *testing.T) {
				t.Run("implicit", func(t *testing.T) { s.refuses(t, c, s.db) })
				t.Run("explicit", func(t *testing.T) {
					s.holds(t, c, func(run func(*gorm.DB) error) error { return s.db.Transaction(run) })
				})
			})
		}
	})
}

// holds runs a cell in a transaction.
func (s *lookout) holds(t *testing.T, c cell, within func(func(*gorm.DB) error) error) {
	w, key := s.seed(t), pgtest.Key(t)
	s.begin(key)
	var ran error
	err := within(func(tx *gorm.DB) error {
		ran = c.run(tx, w, key)
		if _, ok := tx.Statement.ConnPool.(gorm.TxCommitter); ok && !pgtest.Held(t, key) {
			t.Error("the lock is gone before the transaction is over")
		}
		return nil
	})
	executed, unheld := s.end()
	if err != nil || ran != nil && !errors.Is(ran, errInner) {
		t.Errorf("err = %v, %v", ran, err)
	}
	if countOnWidgets(executed) == 0 {
		t.Errorf("nothing was executed: %q", executed)
	}
	if len(unheld) > 0 {
		t.Errorf("the lock was not held when the server got %q", unheld)
	}
	if n := countLocks(executed); n != c.locks {
		t.Errorf("%d statements took the lock, want %d: %q", n, c.locks, executed)
	}
	if pgtest.Held(t, key) {
		t.Error("the lock is held after the transaction")
	}
}

// refuses runs a cell where there is no transaction.
func (s *lookout) refuses(t *testing.T, c cell, db *gorm.DB) {
	w, key := s.seed(t), pgtest.Key(t)
	s.begin(key)
	err := c.run(db, w, key)
	executed, _ := s.end()
	if !errors.Is(err, gormlock.ErrNoTransaction) {
		t.Errorf("err = %v, want ErrNoTransaction", err)
	}
	if len(executed) > 0 {
		t.Errorf("executed %q", executed)
	}
}

// TestEagerDoors runs every operation, without a lock of its own, where the lock was taken before: by AcquireXactLock,
// or with the BEGIN of Transaction.
func TestEagerDoors(t *testing.T) {
	t.Parallel()
	doors := map[string]func(db *gorm.DB, key lockkey.Key, run func(*gorm.DB) error) error{
		"AcquireXactLock": func(db *gorm.DB, key lockkey.Key, run func(*gorm.DB) error) error {
			return db.Transaction(func(tx *gorm.DB) error {
				if err := gormlock.AcquireXactLock(tx, []lockkey.Key{key}); err != nil {
					return err
				}
				return run(tx)
			})
		},
		"Transaction": func(db *gorm.DB, key lockkey.Key, run func(*gorm.DB) error) error {
			return gormlock.Transaction(db, run, gormlock.Locking(key))
		},
		"Transaction at REPEATABLE READ": func(db *gorm.DB, key lockkey.Key, run func(*gorm.DB) error) error {
			return gormlock.Transaction(db, run, gormlock.Locking(key), gormlock.Isolation(sql.LevelRepeatableRead))
		},
		"Transaction in a transaction": func(db *gorm.DB, key lockkey.Key, run func(*gorm.DB) error) error {
			return db.Transaction(func(tx *gorm.DB) error {
				return gormlock.Transaction(tx, run, gormlock.Locking(key))
			})
		},
	}
	eachMode(t, func(t *testing.T, s *lookout) {
		for name, door := range doors {
			for _, op := range operations {
				t.Run(name+"/"+op.name, func(t *testing.T) {
					c := cell{op.name, op.reads, 1, func(tx *gorm.DB, w *widget, _ lockkey.Key) error { return op.run(tx, w) }}
					s.holdsAlready(t, c, door)
				})
			}
		}
	})
}

func (s *lookout) holdsAlready(t *testing.T, c cell, door func(*gorm.DB, lockkey.Key, func(*gorm.DB) error) error) {
	w, key := s.seed(t), pgtest.Key(t)
	s.begin(key)
	err := door(s.db, key, func(tx *gorm.DB) error {
		if err := c.run(tx, w, key); err != nil && !errors.Is(err, errInner) {
			return err
		}
		if !pgtest.Held(t, key) {
			t.Error("the lock is gone before the transaction is over")
		}
		return nil
	})
	executed, unheld := s.end()
	if err != nil {
		t.Error(err)
	}
	if len(unheld) > 0 || countOnWidgets(executed) == 0 {
		t.Errorf("the lock was not held when the server got %q of %q", unheld, executed)
	}
	if n := countLocks(executed); n != 1 {
		t.Errorf("%d statements took the lock: %q", n, executed)
	}
	if pgtest.Held(t, key) {
		t.Error("the lock is held after the transaction")
	}
}
