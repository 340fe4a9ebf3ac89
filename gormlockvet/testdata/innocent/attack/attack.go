// Package attack has innocent programs that were thought of when the findings were done.
package attack

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

type Seat struct {
	ID      uint
	Show    string
	Holder  string
	Price   int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Message struct {
	ID   uint
	Text string
}

type Office struct {
	db      *gorm.DB
	readDB  *gorm.DB
	tenants map[string]*gorm.DB
	mu      *sync.Mutex
	known   map[uint]Seat
}

// 1: the outbox is written in the transaction, and sent after it.
func (o *Office) Outbox(ctx context.Context, seat *Seat) error {
	var out []Message
	err := o.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		m := Message{Text: seat.Show}
		if err := tx.Create(&m).Error; err != nil {
			return err
		}
		out = append(out, m)
		return tx.Save(seat).Error
	})
	if err != nil {
		return err
	}
	for _, m := range out {
		if _, err := http.Post("http://localhost", "text/plain", bytes.NewBufferString(m.Text)); err != nil {
			return err
		}
	}
	return nil
}

// 2: a replica is read, on purpose.
func (o *Office) Replica(ctx context.Context, id uint) error {
	return o.db.Transaction(func(tx *gorm.DB) error {
		var seat Seat
		if err := o.readDB.WithContext(ctx).First(&seat, id).Error; err != nil {
			return err
		}
		return tx.Create(&Message{Text: seat.Show}).Error
	})
}

// 3: the outer name is the transaction.
func (o *Office) Renamed(db *gorm.DB) error {
	return db.Transaction(func(tx *gorm.DB) error {
		db := tx.Debug()
		return db.Create(&Message{}).Error
	})
}

// 4: a copy of the service in the transaction.
func (o Office) with(tx *gorm.DB) Office {
	return Office{db: tx, readDB: o.readDB, known: o.known}
}

func (o Office) insert() error { return o.db.Create(&Message{}).Error }

func (o Office) Copied() error {
	return o.db.Transaction(func(tx *gorm.DB) error {
		o := o.with(tx)
		if err := o.insert(); err != nil {
			return err
		}
		return o.db.Create(&Message{}).Error
	})
}

// 5: the field is swapped in a copy.
func (o *Office) Swapped() error {
	return o.db.Transaction(func(tx *gorm.DB) error {
		inner := Office{}
		inner.db = tx
		return inner.insert()
	})
}

// 6: each tenant has a database.
func (o *Office) Tenants(a, b string) error {
	return o.tenants[a].Transaction(func(tx *gorm.DB) error {
		return o.tenants[b].Create(&Message{}).Error
	})
}

// 7: a db that is a parameter of its own.
func Copy(from, to *gorm.DB) error {
	return to.Transaction(func(tx *gorm.DB) error {
		var all []Message
		if err := from.Find(&all).Error; err != nil {
			return err
		}
		return tx.Create(&all).Error
	})
}

// 8: what is started in a transaction and does not belong to it.
func (o *Office) Started(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	return o.db.Transaction(func(tx *gorm.DB) error {
		wg.Go(func() { o.db.Create(&Message{Text: "started"}) })
		return tx.Create(&Message{}).Error
	})
}

// 9: errors that are looked at elsewhere.
func (o *Office) Errors(seats []*Seat) (err error) {
	var errs []error
	for _, s := range seats {
		errs = append(errs, o.db.Save(s).Error)
	}
	res := o.db.Save(seats[0])
	defer func() { err = errors.Join(err, res.Error) }()
	must(o.db.Delete(seats[0]).Error)
	tx := o.db.Model(&Seat{}).Where("id > 7")
	if tx.Update("price", 1); tx.Error != nil {
		return tx.Error
	}
	return errors.Join(errs...)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// 10: what is retried starts anew.
func (o *Office) Anew(ctx context.Context, out *[]Seat, total *int64) error {
	return gormlock.Transaction(o.db.WithContext(ctx), func(tx *gorm.DB) error {
		*out, *total = nil, 0
		var seats []Seat
		if err := tx.Find(&seats).Error; err != nil {
			return err
		}
		sums := map[string]int64{}
		for _, s := range seats {
			sums[s.Show] += s.Price
			*total += s.Price
			*out = append(*out, s)
		}
		return nil
	}, gormlock.Attempts(3))
}

// 11: a struct that is filled inside.
func (o *Office) Filled(id uint) (seat Seat, err error) {
	err = gormlock.Transaction(o.db, func(tx *gorm.DB) error {
		seat = Seat{}
		if err := tx.Take(&seat, id).Error; err != nil {
			return err
		}
		seat.Price += 10
		return tx.Save(&seat).Error
	}, gormlock.Attempts(3), gormlock.Locking(gormlock.Key("seat", id)))
	return seat, err
}

// 12: reading a file, printing, measuring.
func (o *Office) Reads() error {
	var took time.Duration
	err := gormlock.Transaction(o.db, func(tx *gorm.DB) error {
		began := time.Now()
		defer func() { took = time.Since(began) }()
		text, err := os.ReadFile("text")
		if err != nil {
			return err
		}
		body, err := json.Marshal(string(text))
		fmt.Fprintln(os.Stderr, "read", len(body))
		return errors.Join(err, tx.Create(&Message{Text: string(body)}).Error)
	}, gormlock.Attempts(2))
	fmt.Println(took)
	return err
}

// 13: a lock that is over.
func (o *Office) Over(ctx context.Context, id uint) error {
	var seat Seat
	if err := o.db.First(&seat, id).Error; err != nil {
		return err
	}
	if err := gormlock.Transaction(o.db, func(tx *gorm.DB) error {
		return tx.Create(&Message{}).Error
	}, gormlock.Locking(gormlock.Key("seat", id))); err != nil {
		return err
	}
	time.Sleep(time.Millisecond)
	return o.db.Save(&seat).Error
}

// 14: another struct of the same kind.
func (o *Office) Another(id uint) error {
	var template Seat
	if err := o.db.First(&template, id).Error; err != nil {
		return err
	}
	return gormlock.Transaction(o.db, func(tx *gorm.DB) error {
		seat := Seat{Show: template.Show, Price: template.Price}
		return tx.Create(&seat).Error
	}, gormlock.Locking(gormlock.Key("seats")))
}

// 15: SQL that is none of the versions' business.
func (o *Office) SQL(pool *sql.DB) error {
	for _, text := range []string{
		"UPDATE messages SET text = ''", "LOCK TABLE seats IN SHARE MODE", "SELECT id FROM seats FOR NO KEY UPDATE SKIP LOCKED",
		"CREATE INDEX ON seats (show)", "ANALYZE seats",
	} {
		if err := o.db.Exec(text).Error; err != nil {
			return err
		}
	}
	if _, err := pool.Exec("UPDATE seats SET holder = $1, version = version + 1 WHERE id = $2 AND version = $3", "x", 1, 2); err != nil {
		return err
	}
	return o.db.Exec("ALTER TABLE seats ADD COLUMN row text; COMMENT ON TABLE seats IS 'UPDATE seats SET price = 1'").Error
}

// 16: columns of another model, by the same names.
func (o *Office) Columns() error {
	return o.db.Model(&Message{}).Where("id = ?", 1).UpdateColumn("version", 3).Error
}

// 17: upserts of the model.
func (o *Office) Upsert(seats []Seat) error {
	return o.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&seats).Error
}

// 18: ctx that is meant to live longer, or belongs to nobody.
func (o *Office) Lives(ctx context.Context, leases *lease.Manager) error {
	return leases.Do(ctx, gormlock.Key("lives"), time.Minute, func(held context.Context) error {
		after, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		if ctx.Err() != nil {
			return o.db.WithContext(after).Create(&Message{Text: "ended"}).Error
		}
		return o.db.WithContext(held).Create(&Message{}).Error
	})
}

// 19: locks that are told of by their own return values.
func (o *Office) Try(ctx context.Context, m *sessionlock.Manager, tx *gorm.DB) (bool, error) {
	l, err := m.TryAcquire(ctx, gormlock.Key("try"))
	if errors.Is(err, sessionlock.ErrNotAcquired) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = l.Release(context.WithoutCancel(ctx)) }()
	err = gormlock.AcquireXactLock(tx, []lockkey.Key{l.Key()}, gormlock.Try())
	return err == nil, err
}

// 20: a cache that is filled when the transaction is over.
func (o *Office) Cache(ctx context.Context, id uint) (Seat, error) {
	seat, err := gorm.G[Seat](o.db).Where("id = ?", id).First(ctx)
	if err != nil {
		return Seat{}, err
	}
	err = gormlock.Transaction(o.db.WithContext(ctx), func(tx *gorm.DB) error {
		if err := gormlock.VerifyVersion(tx, &seat); err != nil {
			return err
		}
		seat.Holder = "me"
		return tx.Save(&seat).Error
	}, gormlock.Locking(gormlock.Key("seat", id)))
	if err == nil {
		o.mu.Lock()
		o.known[id] = seat
		o.mu.Unlock()
	}
	return seat, err
}
