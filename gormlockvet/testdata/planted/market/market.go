// Package market is written against the finished findings, by habits that the other programs do not have.
package market

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/sessionlock"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

type Stall struct {
	gorm.Model
	Name    string
	Rent    int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Offer struct {
	ID      uint
	StallID uint
	Price   int64
	Lock    int64 `gorm:"default:1" gormlock:"version"`
}

func (Offer) TableName() string { return "market.offers" }

type Note struct {
	ID   uint
	Text string
}

// Repo is a generic repository.
type Repo[T any] struct{ db *gorm.DB }

func NewRepo[T any](db *gorm.DB) *Repo[T] { return &Repo[T]{db: db} }

func (r *Repo[T]) With(tx *gorm.DB) *Repo[T] { return &Repo[T]{db: tx} }

func (r *Repo[T]) ByID(ctx context.Context, id uint) (*T, error) {
	var t T
	if err := r.db.WithContext(ctx).First(&t, id).Error; err != nil {
		return nil, err
	}
	return &t, nil
}

func (r *Repo[T]) Store(ctx context.Context, t *T) error { return r.db.WithContext(ctx).Save(t).Error }

// Stores is what a unit of work hands out.
type Stores struct {
	Stalls *Repo[Stall]
	Offers *Repo[Offer]
	Notes  *Repo[Note]
}

type Market struct {
	Stores
	db     *gorm.DB
	raw    *sql.DB
	client *http.Client
	leases *lease.Manager
	locks  *sessionlock.Manager
}

// Unit runs fn with stores of a transaction.
func (m *Market) Unit(ctx context.Context, fn func(s Stores) error) error {
	return m.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		return fn(Stores{NewRepo[Stall](tx), NewRepo[Offer](tx), NewRepo[Note](tx)})
	})
}

func (m *Market) Rename(ctx context.Context, id uint, name string) error {
	return m.db.Transaction(func(tx *gorm.DB) error {
		stall, err := m.Stalls.With(tx).ByID(ctx, id)
		if err != nil {
			return err
		}
		stall.Name = name
		if err := m.Stalls.Store(ctx, stall); err != nil { // misuse: outer
			return err
		}
		return m.Notes.With(tx).Store(ctx, &Note{Text: name})
	})
}

func (m *Market) Count(ctx context.Context) (n int64, err error) {
	err = m.db.Transaction(func(tx *gorm.DB) error {
		q := m.db.Model(&Stall{}).Where("rent > ?", 3)
		if err := q.Count(&n).Error; err != nil { // misuse: outer
			return err
		}
		return tx.Create(&Note{Text: fmt.Sprint(n)}).Error
	})
	return n, err
}

func (m *Market) Generic(ctx context.Context) error {
	return gormlock.Transaction(m.db, func(tx *gorm.DB) error {
		_, err := gorm.G[Stall](m.db).Where("rent = 0").Update(ctx, "rent", 1) // misuse: outer
		return err
	}, gormlock.Locking(gormlock.Key("rents")))
}

func (m *Market) Raise(ctx context.Context, id uint) error {
	stall, err := m.Stalls.ByID(ctx, id)
	if err != nil {
		return err
	}
	return gormlock.Transaction(m.db.WithContext(ctx), func(tx *gorm.DB) error {
		stall.Rent++
		return tx.Save(stall).Error // misuse: old
	}, gormlock.Locking(gormlock.Key("stall", id)))
}

func (m *Market) Charge(ctx context.Context, id uint) error {
	return m.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var stall Stall
		if err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).First(&stall, id).Error; err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://bank.example", bytes.NewReader(nil))
		if err != nil {
			return err
		}
		resp, err := m.client.Do(req) // misuse: held
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		timer := time.NewTimer(time.Second)
		select { // misuse: held
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		return tx.Model(&stall).Update("rent", 0).Error
	})
}

func (m *Market) Texts(ctx context.Context, id uint) error {
	if err := m.db.Exec("update stalls set rent = rent * 2 where deleted_at is null").Error; err != nil { // misuse: around
		return err
	}
	var raised []uint
	if err := m.db.Raw(`UPDATE market.offers SET price = price + 1 WHERE stall_id = ? RETURNING id`, id).Scan(&raised).Error; err != nil { // misuse: around
		return err
	}
	if err := m.db.Table("stalls").Where("id = ?", id).Updates(map[string]any{"rent": 3}).Error; err != nil { // misuse: around
		return err
	}
	if _, err := m.raw.ExecContext(ctx, "UPDATE public.stalls SET name = $1", "x"); err != nil { // misuse: around
		return err
	}
	const stale = `
		WITH cheap AS (SELECT id FROM stalls WHERE rent < 3)
		UPDATE stalls SET rent = 3 FROM cheap WHERE cheap.id = stalls.id`
	return m.db.WithContext(ctx).Exec(stale).Error // misuse: around
}

func (m *Market) Partly(id uint) error {
	var stall Stall
	if err := m.db.Select("id", "version", "rent").First(&stall, id).Error; err != nil {
		return err
	}
	stall.Rent = 7
	return m.db.Save(&stall).Error // misuse: around
}

func (m *Market) Ignoring(ctx context.Context, stall *Stall) (int64, error) {
	m.db.Save(stall)                                                             // misuse: ignored
	n := m.db.Model(stall).Update("rent", 3).RowsAffected                        // misuse: ignored
	_ = m.db.Delete(stall).Error                                                 // misuse: ignored
	stalls, _ := gormlock.Claim[Stall](m.db, 3, map[string]any{"name": "taken"}) // misuse: ignored
	go m.locks.Do(ctx, gormlock.Key("job"), func(context.Context) error {        // misuse: ignored
		return nil
	})
	return n + int64(len(stalls)), nil
}

func (m *Market) Retried(ctx context.Context, path string) (names []string, err error) {
	total := 0
	byID := map[uint]int{}
	err = gormlock.Transaction(m.db, func(tx *gorm.DB) error {
		var stalls []Stall
		if err := tx.Find(&stalls).Error; err != nil {
			return err
		}
		for _, s := range stalls {
			names = append(names, s.Name) // misuse: retried
			total += int(s.Rent)          // misuse: retried
			byID[s.ID]++                  // misuse: retried
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil { // misuse: retried
			return err
		}
		return tx.Create(&Note{Text: "told"}).Error
	}, gormlock.Attempts(3))
	fmt.Println(total, byID)
	return names, err
}

func (m *Market) Lead(ctx context.Context) error {
	return m.leases.Lead(ctx, gormlock.Key("market"), time.Minute, func(led context.Context) error {
		for {
			if err := m.Rename(ctx, 1, "x"); err != nil { // misuse: outer
				return err
			}
			if led.Err() != nil {
				return nil
			}
		}
	})
}

func (m *Market) Drop(ctx context.Context, key gormlock.LockKey) error {
	return m.db.Transaction(func(tx *gorm.DB) error {
		locked := tx.Scopes(gormlock.WithXactLock(key))
		stall, err := gorm.G[Stall](locked).First(ctx) // misuse: dropped
		if err != nil {
			return err
		}
		tx.Scopes(gormlock.WithXactLock(key)) // misuse: dropped
		return tx.Model(&stall).Update("rent", 3).Error
	})
}

func (m *Market) Print(id uint) error {
	return gormlock.Transaction(m.db, func(tx *gorm.DB) error {
		if err := exec.Command("lpr", fmt.Sprint(id)).Run(); err != nil { // misuse: held
			return err
		}
		return tx.Create(&Note{Text: "printed"}).Error
	}, gormlock.Locking(gormlock.Key("printer")))
}

var errGone = errors.New("gone")

func (m *Market) ByHand(ctx context.Context, id uint) (err error) {
	tx := m.db.WithContext(ctx).Begin()
	defer func() {
		if err != nil {
			tx.Rollback()
		}
	}()
	var stall Stall
	if err := tx.Scopes(gormlock.WithXactLock(gormlock.Key("stall", id))).First(&stall, id).Error; err != nil {
		return err
	}
	time.Sleep(time.Second) // misuse: held
	if stall.Rent == 0 {
		return errGone
	}
	if err := tx.Save(&stall).Error; err != nil {
		return err
	}
	return tx.Commit().Error
}
