package outer

import (
	"context"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/sessionlock"
	"gorm.io/gorm"
)

type Account struct {
	ID      int64
	Balance int64
}

var DB *gorm.DB

var key = gormlock.Key("account", 1)

type service struct {
	db       *gorm.DB
	reportDB *gorm.DB
	accounts *repo
}

type repo struct{ db *gorm.DB }

func newService(db, reports *gorm.DB) *service {
	return &service{db: db, reportDB: reports, accounts: &repo{db: db}}
}

func (r *repo) insert(a *Account) error           { return r.db.Create(a).Error }
func (r *repo) with(tx *gorm.DB) *repo            { return &repo{db: tx} }
func (r *repo) add(tx *gorm.DB, a *Account) error { return tx.Create(a).Error }

func add(db *gorm.DB, a *Account) error { return db.Create(a).Error }

func addGlobal(a *Account) error { return DB.Create(a).Error }

func (s *service) direct(ctx context.Context, a *Account) error {
	return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.First(a).Error; err != nil {
			return err
		}
		s.db.Model(a).Update("balance", 1)                     // want `outer: Update runs on the db from outside of the transaction`
		s.db.WithContext(ctx).Where("id = 1").Delete(a)        // want `Delete runs on the db from outside`
		_, _ = gorm.G[Account](s.db).Where("id = 1").Find(ctx) // want `Find runs on the db from outside`
		_ = s.db.Model(a).Association("Lines").Append(a)       // want `Append runs on the db from outside`
		_ = gormlock.LockRow(s.db, a)                          // want `LockRow runs on the db from outside`
		_ = add(s.db, a)                                       // want `add runs statements on the db from outside`
		return s.accounts.insert(a)                            // want `insert runs statements on the db from outside`
	})
}

func (s *service) innocent(ctx context.Context, a *Account) error {
	return gormlock.Transaction(s.db.WithContext(ctx), func(tx *gorm.DB) error {
		// A sub-query that is built on the outer db runs with the statement around it.
		if err := tx.Where("id IN (?)", s.db.Model(&Account{}).Select("id")).Find(&[]Account{}).Error; err != nil {
			return err
		}
		// Another database is none of the transaction's business.
		if err := s.reportDB.Create(a).Error; err != nil {
			return err
		}
		// A repository that was given the transaction.
		if err := s.accounts.with(tx).insert(a); err != nil {
			return err
		}
		if err := s.accounts.add(tx, a); err != nil {
			return err
		}
		// What does not wait for the transaction runs elsewhere on purpose.
		go func() { s.db.Create(a) }()
		later(func() { s.db.Create(a) })
		return tx.Transaction(func(nested *gorm.DB) error { return tx.Create(a).Error })
	})
}

func later(func()) {}

func captured(db *gorm.DB, a *Account) error {
	return db.Transaction(func(tx *gorm.DB) error {
		for range 3 {
			func() { db.Save(a) }() // want `Save runs on the db from outside`
		}
		defer func() { db.Delete(a) }() // want `Delete runs on the db from outside`
		return gormlock.Transaction(tx, func(tx *gorm.DB) error {
			return db.Create(a).Error // want `Create runs on the db from outside`
		})
	})
}

func global(a *Account) error {
	return gormlock.Transaction(DB, func(tx *gorm.DB) error {
		if err := DB.Create(a).Error; err != nil { // want `Create runs on the db from outside`
			return err
		}
		return addGlobal(a) // want `addGlobal runs statements on the db from outside`
	}, gormlock.Attempts(3))
}

func (s *service) byValue() error { return s.db.Transaction(s.run) }

func (s *service) run(tx *gorm.DB) error {
	return s.db.Create(&Account{}).Error // want `Create runs on the db from outside`
}

func (s *service) made() error { return s.db.Transaction(s.inserting(&Account{})) }

func (s *service) inserting(a *Account) func(*gorm.DB) error {
	return func(tx *gorm.DB) error {
		return s.db.Create(a).Error // want `Create runs on the db from outside`
	}
}

// inTx is how many programs wrap transactions.
func (s *service) inTx(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return fn(tx) })
}

func (s *service) wrapped(ctx context.Context, a *Account) error {
	return s.inTx(ctx, func(tx *gorm.DB) error {
		return s.db.Create(a).Error // want `Create runs on the db from outside`
	})
}

func (s *service) once(tx *gorm.DB) error {
	_, err := gormlock.Once(tx, "pay/1", func(inner *gorm.DB) (int64, error) {
		if err := tx.Create(&Account{}).Error; err != nil { // the same connection
			return 0, err
		}
		return 1, s.db.Create(&Account{}).Error // want `Create runs on the db from outside`
	})
	return err
}

func generic[T any](db *gorm.DB, rows []T) error {
	return db.Transaction(func(tx *gorm.DB) error {
		for i := range rows {
			if err := db.Create(&rows[i]).Error; err != nil { // want `Create runs on the db from outside`
				return err
			}
		}
		return nil
	})
}

// maybe runs on what ctx carries, if it carries any.
type unit struct{ db *gorm.DB }

type txKey struct{}

func (u *unit) conn(ctx context.Context) *gorm.DB {
	if tx, ok := ctx.Value(txKey{}).(*gorm.DB); ok {
		return tx
	}
	return u.db
}

func (u *unit) insert(ctx context.Context, a *Account) error { return u.conn(ctx).Create(a).Error }

func (u *unit) both(ctx context.Context, a *Account) error {
	return u.db.Transaction(func(tx *gorm.DB) error {
		return u.insert(context.WithValue(ctx, txKey{}, tx), a)
	})
}

// The carried transaction is in the ctx that the function is given.
func (u *unit) inTx(ctx context.Context, fn func(ctx context.Context) error) error {
	return u.db.Transaction(func(tx *gorm.DB) error { return fn(context.WithValue(ctx, txKey{}, tx)) })
}

func (u *unit) wrong(ctx context.Context, a *Account) error {
	return u.inTx(ctx, func(txCtx context.Context) error {
		if err := u.insert(txCtx, a); err != nil {
			return err
		}
		return u.insert(ctx, a) // want `the ctx from outside`
	})
}

func locks(ctx context.Context, leases *lease.Manager, m *sessionlock.Manager, db *gorm.DB) error {
	err := leases.Do(ctx, key, time.Minute, func(held context.Context) error {
		if err := db.WithContext(ctx).Create(&Account{}).Error; err != nil { // want `outer: the ctx from outside does not end when the lock is lost`
			return err
		}
		bounded, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		if err := report(bounded); err != nil { // want `the ctx from outside`
			return err
		}
		info(ctx)
		own, cancel := context.WithTimeout(held, time.Second)
		defer cancel()
		return report(own)
	})
	if err != nil {
		return err
	}
	return m.Do(ctx, key, func(context.Context) error {
		defer report(context.WithoutCancel(ctx)) // on purpose
		return report(ctx)                       // want `the ctx from outside`
	})
}

func report(ctx context.Context) error { return ctx.Err() }

func info(context.Context) { logInfo() }

func logInfo() {}
