// Package crm keeps the transaction in its handlers.
package crm

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"gorm.io/gorm"
)

type Contact struct {
	gorm.Model
	Name    string
	Email   string
	Version int64 `gorm:"default:0" gormlock:"version"` // misuse: tags
}

type Deal struct {
	gorm.Model
	ContactID uint
	Amount    int64
	Lock      uint32 `gorm:"column:xmin" gormlock:"version,xmin"` // misuse: tags
}

type Task struct {
	Title   string
	Version int64 `gormlock:"version"` // misuse: tags
}

type Event struct {
	gorm.Model
	Kind string
	Seq  int64 `gormlock:"fence,report"` // misuse: tags
}

type App struct {
	*gorm.DB
	log    *slog.Logger
	leases *lease.Manager
	hits   atomic.Int64
}

type handler func(tx *gorm.DB, r *http.Request) (any, error)

// handle wraps a handler in a transaction.
func (a *App) handle(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := gormlock.Transaction(a.DB.WithContext(r.Context()), func(tx *gorm.DB) error {
			out, err := h(tx, r)
			if err != nil {
				return err
			}
			_, err = w.Write([]byte(out.(string))) // misuse: retried
			return err
		}, gormlock.Attempts(3))
		if err != nil {
			a.log.Error("request", "err", err)
			http.Error(w, "no", http.StatusInternalServerError)
		}
	}
}

func (a *App) Rename(ctx context.Context, id uint, name string) error {
	return a.Transaction(func(tx *gorm.DB) error {
		var c Contact
		if err := tx.First(&c, id).Error; err != nil {
			return err
		}
		c.Name = name
		return a.Save(&c).Error // misuse: outer
	})
}

func (a *App) Tasks() error {
	if err := a.AutoMigrate(&Task{}); err != nil {
		return err
	}
	rename := func(tx *gorm.DB) error {
		a.Create(&Event{Kind: "renamed"}) // misuse: outer ignored
		return tx.Model(&Contact{}).Where("id = ?", 1).Update("name", "x").Error
	}
	return a.DB.Transaction(rename, &sql.TxOptions{Isolation: sql.LevelSerializable})
}

func (a *App) Sync(ctx context.Context, remote *http.Client) error {
	return a.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		contacts, err := gorm.G[Contact](tx, gormlock.RowLock(gormlock.ForUpdate)).Find(ctx)
		if err != nil {
			return err
		}
		for i := range contacts {
			res, err := remote.Get("http://localhost/" + contacts[i].Email) // misuse: held
			if err != nil {
				return err
			}
			_ = res.Body.Close()
			contacts[i].Name = res.Status
		}
		return tx.Save(&contacts).Error
	})
}

func (a *App) Lead(ctx context.Context) error {
	return a.leases.Do(ctx, gormlock.Key("lead"), 30, func(context.Context) error {
		return a.WithContext(ctx).Create(&Event{Kind: "lead"}).Error // misuse: outer
	})
}

func (a *App) Email(id uint, email string) {
	_ = a.Model(&Contact{}).Where("id = ?", id).Update("email", email).Error // misuse: ignored
}

func (a *App) Raise(id uint) error {
	return a.Raw("UPDATE contacts SET name = upper(name) WHERE id = ? RETURNING name", id).Scan(new(string)).Error // misuse: around
}
