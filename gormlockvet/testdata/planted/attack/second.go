package attack

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Deps is handed around, with a function for the db.
type Deps struct {
	DB     func() *gorm.DB
	Leases *lease.Manager
}

func (d *Deps) Move(id uint) error {
	return d.DB().Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&Plain{}).Error; err != nil {
			return err
		}
		return d.DB().Delete(&Plain{}, id).Error // misuse: outer
	})
}

// Options that are put together.
func Options(db *gorm.DB, retry bool, ids chan<- uint) error {
	opts := []gormlock.TxOption{gormlock.Locking(gormlock.Key("options"))}
	if retry {
		opts = append(opts, gormlock.Attempts(4))
	}
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		p := Plain{}
		if err := tx.Create(&p).Error; err != nil {
			return err
		}
		ids <- p.ID                  // misuse: retried
		time.Sleep(time.Millisecond) // misuse: held
		return nil
	}, opts...)
}

type base struct{ db *gorm.DB }

// put returns what GORM does.
func (b base) put(s *Seat) *gorm.DB { return b.db.Clauses(clause.Returning{}).Save(s) }

type Box struct {
	base
	log *log.Logger
}

func (b *Box) Put(s *Seat) {
	b.put(s) // misuse: ignored
	b.log.Println("put", s.ID)
}

func sqlFor() string { return "DELETE FROM seats" + " WHERE id = ?" }

func (b *Box) Drop(id uint) error {
	return b.db.Exec(sqlFor(), id).Error // misuse: around
}

// Rows that were read as a list, before each is locked.
func (b *Box) Discount(ctx context.Context) error {
	var seats []Seat
	if err := b.db.WithContext(ctx).Find(&seats).Error; err != nil {
		return err
	}
	for i := range seats {
		err := gormlock.Transaction(b.db, func(tx *gorm.DB) error {
			seats[i].Price /= 2
			return tx.Save(&seats[i]).Error // misuse: old
		}, gormlock.Locking(gormlock.Key("seat", seats[i].ID)))
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Box) Raise(ctx context.Context) error {
	seats, err := gorm.G[Seat](b.db).Find(ctx)
	if err != nil {
		return err
	}
	for _, seat := range seats {
		seat.Price *= 2
		if err := b.db.Scopes(gormlock.WithXactLock(gormlock.Key("seat", seat.ID))).Save(&seat).Error; err != nil { // misuse: old
			return err
		}
	}
	return nil
}

// ID is any key.
type ID interface{ ~int64 | ~string }

type Keyed[K ID] struct {
	ID      K
	Version string `gormlock:"version"` // misuse: tags
}

// A struct of functions.
type steps struct {
	first, second func(tx *gorm.DB) error
}

func Steps(db *gorm.DB) error {
	s := steps{
		first:  func(tx *gorm.DB) error { return tx.Create(&Plain{}).Error },
		second: func(tx *gorm.DB) error { return db.Create(&Plain{}).Error }, // misuse: outer
	}
	return errors.Join(db.Transaction(s.first), db.Transaction(s.second))
}

// Promoted methods.
type Shelf struct {
	*Box
	name string
}

func (s *Shelf) insert() error { return s.db.Create(&Plain{Name: s.name}).Error }

func (s *Shelf) Fill() error {
	return s.db.Transaction(func(tx *gorm.DB) error {
		return s.insert() // misuse: outer
	})
}

// A transaction by hand, whose lock is taken by a query.
func (s *Shelf) ByHand(client *http.Client) (err error) {
	tx := s.db.Begin()
	defer func() {
		if err != nil {
			tx.Rollback()
		}
	}()
	var seat Seat
	if err = tx.Clauses(gormlock.RowLock(gormlock.ForUpdate, gormlock.Try())).Take(&seat).Error; err != nil {
		return err
	}
	res, err := client.Head("http://localhost") // misuse: held
	if err != nil {
		return err
	}
	seat.Holder = res.Status
	if err = tx.Save(&seat).Error; err != nil {
		return err
	}
	return tx.Commit().Error
}

// Retried with a sync.Mutex around a map.
type registry struct {
	sync.RWMutex
	by map[string]uint
}

func (r *registry) Register(db *gorm.DB, name string) error {
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		p := Plain{Name: name}
		if err := tx.Create(&p).Error; err != nil {
			return fmt.Errorf("register: %w", err)
		}
		r.Lock()
		defer r.Unlock()
		if _, ok := r.by[name]; !ok {
			r.by[name] = p.ID // misuse: retried
		}
		delete(r.by, "") // misuse: retried
		return nil
	}, gormlock.Attempts(2))
}

// A leader whose work has the ctx of the program.
func (d *Deps) Lead(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	return d.Leases.Do(ctx, gormlock.Key("lead"), time.Minute, func(leading context.Context) error {
		for {
			select {
			case <-leading.Done():
				return context.Cause(leading)
			case <-tick.C:
				if err := d.step(ctx); err != nil { // misuse: outer
					return err
				}
			}
		}
	})
}

func (d *Deps) step(ctx context.Context) error { return d.DB().WithContext(ctx).Create(&Plain{}).Error }

// Locks in a conditional chain.
func Conditional(ctx context.Context, db *gorm.DB, locked bool) ([]Seat, error) {
	q := db
	if locked {
		q = q.Scopes(gormlock.WithSkipLocked())
	}
	return gorm.G[Seat](q).Find(ctx) // misuse: dropped
}

// Several keys, and nobody who looks.
func Several(tx *gorm.DB, ids ...uint) {
	keys := make([]lockkey.Key, 0, len(ids))
	for _, id := range ids {
		keys = append(keys, gormlock.Key("seat", id))
	}
	if err := gormlock.AcquireXactLock(tx, keys); err == nil {
		tx.Model(&Seat{}).Where("id IN ?", ids).UpdateColumns(map[string]any{"holder": ""}) // misuse: ignored
	}
}

// A model of another name.
type Ticket Seat

func (Ticket) TableName() string { return "tickets" }

func Tickets(db *gorm.DB) error {
	if err := db.Table("tickets").Where("id = ?", 1).Update("holder", "x").Error; err != nil { // misuse: around
		return err
	}
	return db.Model(&Ticket{}).Where("id = ?", 1).UpdateColumn("version", 2).Error // misuse: around
}
