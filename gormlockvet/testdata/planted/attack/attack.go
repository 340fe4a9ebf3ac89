// Package attack has misuses that were thought of when the findings were done.
package attack

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
	"gorm.io/gorm"
)

type Seat struct {
	ID      uint
	Show    string
	Holder  string
	Price   int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Plain struct {
	ID    uint
	Name  string
	Count int
}

// 1: an interface beside its one implementation.
type Seats interface {
	Hold(ctx context.Context, id uint, who string) error
}

type seatStore struct{ db *gorm.DB }

func NewSeats(db *gorm.DB) Seats { return &seatStore{db: db} }

func (s *seatStore) Hold(ctx context.Context, id uint, who string) error {
	return s.db.WithContext(ctx).Model(&Seat{}).Where("id = ?", id).Update("holder", who).Error
}

type Office struct {
	db    *gorm.DB
	seats Seats
	http  *http.Client
}

func (o *Office) Reserve(ctx context.Context, id uint, who string) error {
	return o.db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&Plain{Name: who}).Error; err != nil {
			return err
		}
		return o.seats.Hold(ctx, id, who) // misuse: outer
	})
}

// 2: a repository made of the wrong db, inside.
func (o *Office) Release(ctx context.Context, id uint) error {
	return gormlock.Transaction(o.db, func(tx *gorm.DB) error {
		return NewSeats(o.db).Hold(ctx, id, "") // misuse: outer
	})
}

// 3: a generic helper that returns a value.
func InTx[T any](ctx context.Context, db *gorm.DB, fn func(tx *gorm.DB) (T, error)) (out T, err error) {
	err = db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		out, err = fn(tx)
		return err
	})
	return out, err
}

func (o *Office) Count(ctx context.Context) (int64, error) {
	return InTx(ctx, o.db, func(tx *gorm.DB) (n int64, err error) {
		err = o.db.Model(&Seat{}).Count(&n).Error // misuse: outer
		return n, err
	})
}

// 4: a batch in the transaction.
func (o *Office) Batches() error {
	return o.db.Transaction(func(tx *gorm.DB) error {
		var seats []Seat
		return tx.FindInBatches(&seats, 100, func(batch *gorm.DB, n int) error {
			for i := range seats {
				seats[i].Price++
			}
			return o.db.Save(&seats).Error // misuse: outer
		}).Error
	})
}

// 5: an iterator.
func each(seats []Seat) iter.Seq[*Seat] {
	return func(yield func(*Seat) bool) {
		for i := range seats {
			if !yield(&seats[i]) {
				return
			}
		}
	}
}

func (o *Office) Iterate(seats []Seat) error {
	return o.db.Transaction(func(tx *gorm.DB) error {
		for seat := range each(seats) {
			if err := o.db.Save(seat).Error; err != nil { // misuse: outer
				return err
			}
		}
		return nil
	})
}

// 6, 7: locks in variables.
var lockShow = gormlock.WithXactLock(gormlock.Key("show"))

func (o *Office) Show(ctx context.Context) ([]Seat, error) {
	return gorm.G[Seat](o.db.Scopes(lockShow)).Find(ctx) // misuse: dropped
}

func (o *Office) Scoped(ctx context.Context, share bool) (Seat, error) {
	scopes := []func(*gorm.DB) *gorm.DB{gormlock.WithRowLock(gormlock.ForShare)}
	db := o.db.Scopes(scopes...)
	return gorm.G[Seat](db).First(ctx) // misuse: dropped
}

// 8: a method's value.
func (o *Office) Values(seat *Seat) {
	save := o.db.Save
	save(seat) // misuse: ignored
}

// 9, 10: SQL put together.
var cheaper = "UPDATE seats SET price = price - 1"

func (o *Office) Cheaper(pool *sql.DB) error {
	if _, err := pool.Exec(cheaper + " WHERE price > 0"); err != nil { // misuse: around
		return err
	}
	return o.db.Exec(strings.Join([]string{"UPDATE seats", "SET holder = ''", "WHERE holder IS NULL"}, "\n")).Error // misuse: around
}

// 11: a slice of counters.
func Tally(db *gorm.DB, counts []int) error {
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		counts[0]++ // misuse: retried
		return tx.Create(&Plain{}).Error
	}, gormlock.Attempts(9))
}

// 12: a pointer to a sum.
func Sum(db *gorm.DB, sum *int64, seats []Seat) error {
	run := func(tx *gorm.DB) error {
		for _, s := range seats {
			*sum += s.Price // misuse: retried
		}
		return tx.Save(&seats).Error
	}
	opts := []gormlock.TxOption{gormlock.Attempts(3), gormlock.Isolation(sql.LevelSerializable)}
	return gormlock.Transaction(db, run, opts...)
}

// 13: a lock, then one's own reading from before, by a helper.
func (o *Office) Upgrade(ctx context.Context, m *sessionlock.Manager, id uint) (err error) {
	seat, err := o.find(id)
	if err != nil {
		return err
	}
	return m.Do(ctx, gormlock.Key("seat", id), func(ctx context.Context) error {
		seat.Price *= 2
		return o.store(ctx, &seat) // misuse: old
	})
}

func (o *Office) find(id uint) (s Seat, err error) {
	err = o.db.First(&s, id).Error
	return s, err
}

func (o *Office) store(ctx context.Context, s *Seat) error {
	return o.db.WithContext(ctx).Save(s).Error
}

// 14: a ticker.
func (o *Office) Poll(tick *time.Ticker) error {
	return o.db.Transaction(func(tx *gorm.DB) error {
		if _, err := gormlock.FenceFor(tx, gormlock.Key("poll")); err != nil {
			return err
		}
		<-tick.C // misuse: held
		return nil
	})
}

// 15: two calls deep.
func (o *Office) Ask(ctx context.Context) error {
	return gormlock.Transaction(o.db.WithContext(ctx), func(tx *gorm.DB) error {
		return o.ask(ctx) // misuse: held
	}, gormlock.Locking(gormlock.Key("ask")))
}

func (o *Office) ask(ctx context.Context) error {
	for range 3 {
		if err := o.request(ctx); err == nil {
			return nil
		}
	}
	return errors.New("nobody answers")
}

func (o *Office) request(ctx context.Context) error {
	res, err := o.http.Get("http://localhost")
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// 16: a lock in a switch.
func Lock(tx *gorm.DB, kind string) {
	switch kind {
	case "row":
		_ = gormlock.LockRow(tx, &Seat{ID: 1}) // misuse: ignored
	default:
		gormlock.AcquireXactLock(tx, []lockkey.Key{gormlock.Key(kind)}) // misuse: ignored
	}
}

// 17: a having, with a lock in it.
func (o *Office) Having() (shows []string, err error) {
	rich := o.db.Scopes(lockShow).Model(&Seat{}).Select("avg(price)") // misuse: dropped
	err = o.db.Model(&Seat{}).Group("show").Having("sum(price) > (?)", rich).Pluck("show", &shows).Error
	return shows, err
}

// 18: a struct inside of a function, with a wrong tag.
func Local(db *gorm.DB) error {
	type ticket struct {
		ID      uint
		Version bool `gormlock:"version"` // misuse: tags
	}
	return db.AutoMigrate(&ticket{})
}

// 19: a ctx from a struct.
type Task struct {
	ctx   context.Context
	locks *sessionlock.Manager
	db    *gorm.DB
}

func (t *Task) Run() error {
	return t.locks.Do(t.ctx, gormlock.Key("task"), func(ctx context.Context) error {
		return t.db.WithContext(t.ctx).Create(&Plain{}).Error // misuse: outer
	})
}

// 20: sorted, and written to a file of the caller.
func Export(db *gorm.DB, out fmt.Stringer, seats map[string][]Seat) error {
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		var all []Seat
		if err := tx.Find(&all).Error; err != nil {
			return err
		}
		slices.SortFunc(all, func(a, b Seat) int { return strings.Compare(a.Show, b.Show) })
		for _, s := range all {
			seats[s.Show] = append(seats[s.Show], s) // misuse: retried
		}
		return nil
	}, gormlock.Attempts(3))
}
