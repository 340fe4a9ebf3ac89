package invariants

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

// crew is what writers of parts have in common: owners and parts that they fight for.
type crew struct {
	r             *rand.Rand
	owners, parts []int64
}

func (c *crew) owner() int64 { return c.owners[c.r.IntN(len(c.owners))] }
func (c *crew) id() int64    { return c.parts[c.r.IntN(len(c.parts))] }

func (c *crew) part(tx *gorm.DB) (*Part, error) {
	var p Part
	if c.r.IntN(2) == 0 {
		tx = tx.Preload("Owner")
	}
	return &p, tx.First(&p, c.id()).Error
}

// with reads a part and does something with it.
func with(do func(c *crew, tx *gorm.DB, p *Part) error) func(c *crew, tx *gorm.DB) error {
	return func(c *crew, tx *gorm.DB) error {
		p, err := c.part(tx)
		if err != nil {
			return err
		}
		return do(c, tx, p)
	}
}

func pointerTo(id int64) *int64 { return &id }

// partWrites are ways to write parts and their roots.
var partWrites = map[string]func(c *crew, tx *gorm.DB) error{
	"create": func(c *crew, tx *gorm.DB) error {
		return tx.Create(&Part{OwnerID: pointerTo(c.owner()), Columns: c.columns()}).Error
	},
	"create two": func(c *crew, tx *gorm.DB) error {
		return tx.Create(&[]Part{{OwnerID: pointerTo(c.owner()), Columns: c.columns()}, {OwnerID: pointerTo(c.owner()), Columns: c.columns()}}).Error
	},
	"create by a map": func(c *crew, tx *gorm.DB) error {
		return tx.Model(&Part{}).Create(map[string]any{"owner_id": c.owner(), "u": c.columns().U}).Error
	},
	"upsert": func(c *crew, tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"a", "owner_id"})}).
			Create(&Part{ID: c.id(), OwnerID: pointerTo(c.owner()), Columns: c.columns()}).Error
	},
	"DoNothing": func(c *crew, tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&[]Part{{ID: c.id(), OwnerID: pointerTo(c.owner()), Columns: c.columns()}}).Error
	},
	"save": with(func(_ *crew, tx *gorm.DB, p *Part) error { p.A++; return tx.Save(p).Error }),
	"move": with(func(c *crew, tx *gorm.DB, p *Part) error {
		p.Owner, p.OwnerID = nil, pointerTo(c.owner())
		return tx.Save(p).Error
	}),
	"update": with(func(_ *crew, tx *gorm.DB, p *Part) error { return tx.Model(p).Update("a", gorm.Expr("a + 1")).Error }),
	"delete": with(func(c *crew, tx *gorm.DB, p *Part) error {
		if err := tx.Delete(p).Error; err != nil {
			return err
		}
		// The versions of the row go on. At the first one again it could not be told from the row that was deleted.
		return tx.Create(&Part{ID: p.ID, Version: p.Version + 1, OwnerID: pointerTo(c.owner()), Columns: c.columns()}).Error
	}),
	"bulk": func(c *crew, tx *gorm.DB) error {
		return tx.Model(&Part{}).Where("owner_id = ?", c.owner()).Update("b", c.r.IntN(100)).Error
	},
	"bulk move": func(c *crew, tx *gorm.DB) error {
		return tx.Model(&Part{}).Where("owner_id = ?", c.owner()).Update("owner_id", c.owner()).Error
	},
	"of fresh owners": func(c *crew, tx *gorm.DB) error {
		return tx.Model(&Part{}).Where("owner_id IN (?)", tx.Session(&gorm.Session{NewDB: true}).Model(&Owner{}).Select("id").Where("version < ?", 5+c.r.IntN(40))).Update("b", 1).Error
	},
	"bulk delete": func(c *crew, tx *gorm.DB) error {
		return tx.Where("owner_id = ? AND id > 2000000", c.owner()).Delete(&Part{}).Error
	},
	"generics": func(c *crew, tx *gorm.DB) error {
		_, err := gorm.G[Part](tx).Where("id = ?", c.id()).Updates(context.Background(), Part{OwnerID: pointerTo(c.owner())})
		return err
	},
	"replace": func(c *crew, tx *gorm.DB) error {
		p, err := c.part(tx)
		if err != nil {
			return err
		}
		var o Owner
		if err := tx.First(&o, c.owner()).Error; err != nil {
			return err
		}
		return tx.Model(p).Association("Owner").Replace(&o)
	},
	"clear": with(func(_ *crew, tx *gorm.DB, p *Part) error { return tx.Model(p).Association("Owner").Clear() }),
	"owner": func(c *crew, tx *gorm.DB) error {
		var o Owner
		if err := tx.First(&o, c.owner()).Error; err != nil {
			return err
		}
		o.Title = fmt.Sprint(c.r.Uint64())
		return tx.Save(&o).Error
	},
	"savepoint": func(c *crew, tx *gorm.DB) error {
		_ = tx.Transaction(func(tx *gorm.DB) error {
			_ = tx.Model(&Part{}).Where("owner_id = ?", c.owner()).Update("b", 2).Error
			return errUndo
		})
		return tx.Model(&Part{}).Where("owner_id = ?", c.owner()).Update("b", 3).Error
	},
}

func (c *crew) columns() Columns { return Columns{A: c.r.Int64N(100), U: fmt.Sprint(c.r.Uint64())} }

// TestRooted_amongWriters lets writers fight for parts and roots, and asks the oracle about all that they committed.
func TestRooted_amongWriters(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t)
	shared := crew{}
	w.exec(t, "INSERT INTO groups (id, title, version) VALUES (1, 'g', 5)")
	for i := range int64(5) {
		shared.owners = append(shared.owners, 10+i)
		w.exec(t, "INSERT INTO owners (id, title, version, group_id) VALUES ($1, 'o', 5, 1)", 10+i)
	}
	for i := range int64(12) {
		shared.parts = append(shared.parts, 100+i)
		w.exec(t, "INSERT INTO parts (id, a, b, u, note, version, owner_id) VALUES ($1, 1, 1, $2, '', 5, $3)", 100+i, fmt.Sprint("p", i), 10+i%5)
	}
	w.exec(t, "SELECT setval('parts_id_seq', 2000000)")
	from := w.now(t)
	names := make([]string, 0, len(partWrites))
	for name := range partWrites {
		names = append(names, name)
	}
	until := time.Now().Add(3 * time.Second)
	var all sync.WaitGroup
	for n := range 6 {
		all.Go(func() {
			c := shared
			c.r = rand.New(rand.NewPCG(uint64(n), seedOf(t)))
			db := w.dbs[[]string{"default", "PrepareStmt", "simple protocol", "PlainTransactions"}[n%4]]
			for time.Now().Before(until) {
				var calls []string
				for range 1 + c.r.IntN(3) {
					calls = append(calls, names[c.r.IntN(len(names))])
				}
				err := gormlock.Transaction(db, func(tx *gorm.DB) error {
					if err := tx.Exec("SET LOCAL deadlock_timeout = '5ms'").Error; err != nil {
						return err
					}
					for _, name := range calls {
						if err := partWrites[name](&c, tx); err != nil {
							return err
						}
					}
					return nil
				}, gormlock.Attempts(5))
				if err != nil && !errors.Is(err, gormlock.ErrVersionMissing) && !gormlock.IsRetryable(err) && !errors.Is(err, gorm.ErrRecordNotFound) {
					t.Errorf("%v: %v", calls, err)
				}
			}
		})
	}
	all.Wait()
	changes := w.changes(t, from, w.now(t))
	for _, one := range w.strays(t, from) {
		t.Errorf("%s: %s", one.Rule, one.What)
		for i := range changes {
			if changes[i].Tx == one.Tx {
				t.Logf("\t%v", &changes[i])
			}
		}
	}
	t.Logf("%d changes", len(changes))
}
