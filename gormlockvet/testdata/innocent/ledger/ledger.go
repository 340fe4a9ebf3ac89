// Package ledger does with care what others do wrong.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/sessionlock"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

type Account struct {
	ID      int64
	Owner   string
	Balance int64
	Seen    time.Time `gormlock:"unversioned"`
	Version int64     `gorm:"not null;default:1" gormlock:"version"`
}

type Entry struct {
	ID        int64
	AccountID int64
	Amount    int64
}

type AuditStore struct{ db *gorm.DB }

func (a *AuditStore) Log(text string) error { return a.db.Create(&Entry{}).Error }

type Ledger struct {
	db     *gorm.DB
	audit  *AuditStore
	client *http.Client
	leases *lease.Manager
	locks  *sessionlock.Manager
	cache  map[int64]Account
}

// New has the audit on a database of its own.
func New(db, auditDB *gorm.DB, leases *lease.Manager) *Ledger {
	return &Ledger{db: db, audit: &AuditStore{db: auditDB}, leases: leases, cache: map[int64]Account{}}
}

func (l *Ledger) Transfer(ctx context.Context, from, to, amount int64) error {
	var moved []int64
	cache := map[int64]Account{}
	err := gormlock.Transaction(l.db.WithContext(ctx), func(tx *gorm.DB) error {
		moved = moved[:0]
		clear(cache)
		pair := []Account{{ID: from}, {ID: to}}
		if err := gormlock.LockRows(tx, &pair); err != nil {
			return err
		}
		pair[0].Balance -= amount
		pair[1].Balance += amount
		for i := range pair {
			if err := tx.Save(&pair[i]).Error; err != nil {
				return err
			}
			moved = append(moved, pair[i].ID)
			cache[pair[i].ID] = pair[i]
		}
		// The audit must stay when the transaction does not.
		if err := l.audit.Log(fmt.Sprint(from, to, amount)); err != nil {
			slog.ErrorContext(ctx, "audit", "err", err)
		}
		return nil
	}, gormlock.Attempts(5))
	if err != nil {
		return err
	}
	for id, a := range cache {
		l.cache[id] = a
	}
	return l.tell(ctx, moved)
}

func (l *Ledger) tell(ctx context.Context, ids []int64) error {
	res, err := l.client.Post("http://localhost", "text/plain", nil)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func (l *Ledger) Close(ctx context.Context, id int64) (closed Account, err error) {
	err = l.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&closed, id).Error; err != nil {
			return err
		}
		if closed.Balance != 0 {
			return errors.New("not empty")
		}
		query := l.db.Model(&Entry{}).Select("account_id").Where("amount <> 0") // is built here and runs in tx
		if err := tx.Where("id NOT IN (?)", query).Delete(&closed).Error; err != nil {
			return err
		}
		return l.entries(tx).Where("account_id = ?", id).Delete(&Entry{}).Error
	})
	return closed, err
}

func (l *Ledger) entries(tx *gorm.DB) *gorm.DB { return tx.Model(&Entry{}) }

// conn is the transaction of ctx, or the db.
func (l *Ledger) conn(ctx context.Context) *gorm.DB {
	if tx, ok := ctx.Value(ctxKey{}).(*gorm.DB); ok {
		return tx.WithContext(ctx)
	}
	return l.db.WithContext(ctx)
}

type ctxKey struct{}

func (l *Ledger) InTx(ctx context.Context, fn func(ctx context.Context) error) error {
	return l.conn(ctx).Transaction(func(tx *gorm.DB) error { return fn(context.WithValue(ctx, ctxKey{}, tx)) })
}

func (l *Ledger) Add(ctx context.Context, e *Entry) error { return l.conn(ctx).Create(e).Error }

func (l *Ledger) Book(ctx context.Context, entries []Entry) error {
	return l.InTx(ctx, func(ctx context.Context) error {
		for i := range entries {
			if err := l.Add(ctx, &entries[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *Ledger) Nightly(ctx context.Context) error {
	return l.leases.Do(ctx, gormlock.Key("nightly"), time.Minute, func(ctx context.Context) error {
		started := time.Now()
		defer func() { slog.InfoContext(ctx, "nightly", "took", time.Since(started)) }()
		// A lease is there to be held for long.
		if err := l.tell(ctx, nil); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
		return l.db.WithContext(ctx).Where("amount = 0").Delete(&Entry{}).Error
	})
}

func (l *Ledger) Seen(ctx context.Context, id int64) error {
	return l.db.WithContext(ctx).Exec("UPDATE accounts SET seen = now() WHERE id = ?", id).Error
}

func (l *Ledger) Interest(ctx context.Context) error {
	return l.db.WithContext(ctx).Exec(`
		UPDATE accounts SET balance = balance * 1.01, version = version + 1
		WHERE balance > 0`).Error
}

func (l *Ledger) Import(ctx context.Context, file func() ([]Entry, error)) (n int, err error) {
	err = gormlock.Transaction(l.db, func(tx *gorm.DB) error {
		entries, err := file()
		if err != nil {
			return err
		}
		var imported int
		for i := range entries {
			if err := tx.Create(&entries[i]).Error; err != nil {
				return err
			}
			imported++
		}
		n = imported
		return nil
	}, gormlock.Locking(gormlock.Key("import")), gormlock.Attempts(3))
	return n, err
}

func (l *Ledger) Single(ctx context.Context, id int64) error {
	lock, err := l.locks.Acquire(ctx, gormlock.Key("single"))
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	var a Account
	if err := l.db.WithContext(ctx).First(&a, id).Error; err != nil {
		return err
	}
	a.Balance++
	return l.db.WithContext(ctx).Save(&a).Error
}

func (l *Ledger) Rename(ctx context.Context, id int64, owner string) error {
	res := l.db.WithContext(ctx).Model(&Account{}).Where("id = ?", id).Update("owner", owner)
	if res.Error != nil {
		return fmt.Errorf("rename: %w", res.Error)
	}
	if res.RowsAffected == 0 {
		return gorm.ErrRecordNotFound
	}
	return nil
}

func (l *Ledger) Owners(ctx context.Context) (owners []Account, err error) {
	err = l.db.WithContext(ctx).Select("id", "owner", "version").Find(&owners).Error
	return owners, err
}

func (l *Ledger) RenameRead(ctx context.Context, id int64, owner string) error {
	var a Account
	if err := l.db.WithContext(ctx).Select("id", "owner", "version").First(&a, id).Error; err != nil {
		return err
	}
	return l.db.WithContext(ctx).Model(&a).Update("owner", owner).Error
}
