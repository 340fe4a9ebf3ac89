// Package repo keeps accounts and entries.
package repo

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/planted/bank/model"
	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

type Accounts struct{ db *gorm.DB }

func NewAccounts(db *gorm.DB) *Accounts { return &Accounts{db: db} }

func (r *Accounts) WithTx(tx *gorm.DB) *Accounts { return &Accounts{db: tx} }

func (r *Accounts) Get(ctx context.Context, id uint) (*model.Account, error) {
	var a model.Account
	if err := r.db.WithContext(ctx).First(&a, id).Error; err != nil {
		return nil, fmt.Errorf("account %d: %w", id, err)
	}
	return &a, nil
}

func (r *Accounts) Save(ctx context.Context, a *model.Account) error {
	return r.db.WithContext(ctx).Save(a).Error
}

func (r *Accounts) Rename(ctx context.Context, id uint, owner string) error {
	return r.db.WithContext(ctx).Exec("UPDATE accounts SET owner = ? WHERE id = ?", owner, id).Error // misuse: around
}

func (r *Accounts) Touch(ctx context.Context, id uint) error {
	return r.db.WithContext(ctx).Table("accounts").Where("id = ?", id).UpdateColumn("currency", "EUR").Error // misuse: around
}

func (r *Accounts) Close(ctx context.Context, a *model.Account) {
	r.db.WithContext(ctx).Delete(a) // misuse: ignored
}

func (r *Accounts) ForUpdate(ctx context.Context, tx *gorm.DB, id uint) (model.Account, error) {
	return gorm.G[model.Account](tx.Clauses(gormlock.RowLock(gormlock.ForUpdate))).Where("id = ?", id).First(ctx) // misuse: dropped
}

func (r *Accounts) locked(key string) *gorm.DB {
	return r.db.Scopes(gormlock.WithXactLock(gormlock.Key("account", key)))
}

func (r *Accounts) Sum(ctx context.Context, owner string) (int64, error) {
	accounts, err := gorm.G[model.Account](r.locked(owner)).Where("owner = ?", owner).Find(ctx) // misuse: dropped
	var sum int64
	for _, a := range accounts {
		sum += a.Balance
	}
	return sum, err
}

func (r *Accounts) Rich(ctx context.Context, tx *gorm.DB) ([]model.Account, error) {
	var rich []model.Account
	busy := tx.Scopes(gormlock.WithXactLock(gormlock.Key("rich"))).Model(&model.Account{}).Select("id").Where("balance > ?", 1_000_000) // misuse: dropped
	err := tx.WithContext(ctx).Where("id IN (?)", busy).Find(&rich).Error
	return rich, err
}

type Entries struct{ db *gorm.DB }

func NewEntries(db *gorm.DB) *Entries { return &Entries{db} }

func (r *Entries) Add(ctx context.Context, e *model.Entry) error {
	return r.db.WithContext(ctx).Create(e).Error
}

// Store is what services begin transactions on.
type Store struct {
	DB       *gorm.DB
	Accounts *Accounts
	Entries  *Entries
}

func NewStore(db *gorm.DB) *Store {
	return &Store{DB: db, Accounts: NewAccounts(db), Entries: NewEntries(db)}
}

// InTx runs fn on a store of the transaction.
func (s *Store) InTx(ctx context.Context, fn func(tx *Store) error) error {
	return s.DB.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return fn(NewStore(tx)) })
}

// Locked runs fn under the lock of an account.
func (s *Store) Locked(ctx context.Context, id uint, fn func(tx *gorm.DB) error) error {
	return gormlock.Transaction(s.DB.WithContext(ctx), fn, gormlock.Locking(gormlock.Key("account", id)), gormlock.Attempts(10))
}

var ErrPoor = errors.New("not enough money")
