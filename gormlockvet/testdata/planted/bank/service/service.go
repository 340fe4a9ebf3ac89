// Package service moves money.
package service

import (
	"context"
	"net/http"
	"strings"
	"time"

	"example.com/shop/planted/bank/model"
	"example.com/shop/planted/bank/repo"
	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"gorm.io/gorm"
)

type Bank struct {
	store    *repo.Store
	db       *gorm.DB
	client   *http.Client
	notified []uint
	stats    map[uint]int64
}

func New(db *gorm.DB, client *http.Client) *Bank {
	return &Bank{store: repo.NewStore(db), db: db, client: client, stats: map[uint]int64{}}
}

func (b *Bank) Transfer(ctx context.Context, from, to uint, amount int64) error {
	return b.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var source, target model.Account
		if err := tx.First(&source, from).Error; err != nil {
			return err
		}
		if err := b.db.First(&target, to).Error; err != nil { // misuse: outer
			return err
		}
		if source.Balance < amount {
			return repo.ErrPoor
		}
		source.Balance -= amount
		target.Balance += amount
		if err := tx.Save(&source).Error; err != nil {
			return err
		}
		if err := tx.Save(&target).Error; err != nil {
			return err
		}
		return b.store.Entries.Add(ctx, &model.Entry{AccountID: to, Amount: amount}) // misuse: outer
	})
}

func (b *Bank) Deposit(ctx context.Context, id uint, amount int64) error {
	account, err := b.store.Accounts.Get(ctx, id)
	if err != nil {
		return err
	}
	return gormlock.Transaction(b.db.WithContext(ctx), func(tx *gorm.DB) error {
		account.Balance += amount     // misuse: retried
		return tx.Save(account).Error // misuse: old
	}, gormlock.Locking(gormlock.Key("account", id)), gormlock.Attempts(5))
}

func (b *Bank) Withdraw(ctx context.Context, id uint, amount int64) error {
	return b.store.Locked(ctx, id, func(tx *gorm.DB) error {
		var a model.Account
		if err := tx.First(&a, id).Error; err != nil {
			return err
		}
		a.Balance -= amount
		if err := tx.Save(&a).Error; err != nil {
			return err
		}
		b.notified = append(b.notified, id) // misuse: retried
		b.stats[id] += amount               // misuse: retried
		return b.notify(ctx, a)             // misuse: held retried
	})
}

func (b *Bank) notify(ctx context.Context, a model.Account) error {
	res, err := b.client.Post("http://localhost/notify", "text/plain", strings.NewReader(a.Owner))
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func (b *Bank) CloseMonth(ctx context.Context) error {
	return b.store.InTx(ctx, func(tx *repo.Store) error {
		if err := gormlock.AcquireXactLock(tx.DB, []lockkey.Key{gormlock.Key("month")}); err != nil {
			return err
		}
		time.Sleep(time.Second) // misuse: held
		a, err := tx.Accounts.Get(ctx, 1)
		if err != nil {
			return err
		}
		a.Balance = 0
		return b.store.Accounts.Save(ctx, a) // misuse: outer
	})
}

func (b *Bank) Freeze(ctx context.Context, id uint) error {
	return b.db.Transaction(b.freeze(ctx, id))
}

func (b *Bank) freeze(ctx context.Context, id uint) func(*gorm.DB) error {
	return func(tx *gorm.DB) error {
		gormlock.LockRow(tx, &model.Account{ID: id})                                                                   // misuse: ignored
		return b.db.WithContext(ctx).Model(&model.Account{ID: id}).Where("id = ?", id).Update("currency", "XXX").Error // misuse: outer
	}
}

func (b *Bank) Correct(ctx context.Context, id uint) error {
	var a model.Account
	if err := b.db.WithContext(ctx).Select("id", "balance", "version").Take(&a, id).Error; err != nil {
		return err
	}
	a.Balance = max(a.Balance, 0)
	return b.db.WithContext(ctx).Save(&a).Error // misuse: around
}

func (b *Bank) Bump(ctx context.Context, a *model.Account) error {
	return b.db.WithContext(ctx).Model(a).UpdateColumn("version", gorm.Expr("version + 1")).Error // misuse: around
}

func (b *Bank) Import(ctx context.Context, rows <-chan model.Entry) (imported int, err error) {
	err = gormlock.Transaction(b.db.WithContext(ctx), func(tx *gorm.DB) error {
		for row := range rows { // misuse: held
			if err := tx.Create(&row).Error; err != nil {
				return err
			}
			imported++ // misuse: retried
		}
		return nil
	}, gormlock.Locking(gormlock.Key("import"), gormlock.Try()), gormlock.Attempts(3))
	return imported, err
}

func (b *Bank) Charge(ctx context.Context, key string, amount int64) (int64, error) {
	var left int64
	err := b.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var err error
		left, err = gormlock.Once(tx, "charge/"+key, func(tx *gorm.DB) (int64, error) {
			a := model.Account{Balance: -amount}
			return a.Balance, b.db.Create(&a).Error // misuse: outer
		})
		return err
	})
	return left, err
}
