// Package app has the services.
package app

import (
	"context"
	"log/slog"
	"time"

	"example.com/shop/planted/rides/domain"
	"example.com/shop/planted/rides/push"
	"example.com/shop/planted/rides/store"
	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"gorm.io/gorm"
)

// Notifier is implemented here once.
type Notifier interface {
	Tell(ctx context.Context, driver *domain.Driver, what string) error
}

type phone struct{ client *push.Client }

func (p *phone) Tell(ctx context.Context, driver *domain.Driver, what string) error {
	return p.client.Notify(ctx, driver.Name, what)
}

// Params are what the container hands in.
type Params struct {
	DB      *gorm.DB
	Unit    *store.Unit
	Rides   *store.Rides
	Drivers *store.Repo[domain.Driver]
	Notify  Notifier
	Log     *slog.Logger
}

// Dispatcher is a service.
type Dispatcher struct{ Params }

func NewDispatcher(p Params) *Dispatcher { return &Dispatcher{p} }

func driverKey(id uint) lockkey.Key { return gormlock.Key("driver", id) }

func (d *Dispatcher) Offer(ctx context.Context, ride *domain.Ride, driverID uint) error {
	return gormlock.Transaction(d.DB.WithContext(ctx), func(tx *gorm.DB) error {
		driver, err := d.Drivers.With(tx).Get(ctx, driverID)
		if err != nil {
			return err
		}
		if err := d.Notify.Tell(ctx, driver, "a ride"); err != nil { // misuse: held
			return err
		}
		driver.Status = "offered"
		return d.Drivers.With(tx).Put(ctx, driver)
	}, gormlock.Locking(driverKey(driverID), gormlock.Timeout(time.Second)))
}

func (d *Dispatcher) Swap(ctx context.Context, a, b *domain.Driver) error {
	return d.Unit.Do(ctx, func(r store.Repos) error {
		a.Name, b.Name = b.Name, a.Name
		if err := r.Drivers.Put(ctx, a); err != nil {
			return err
		}
		return d.Drivers.Put(ctx, b) // misuse: outer
	})
}

func (d *Dispatcher) Archive(ctx context.Context, id uint) error {
	err := d.DB.Transaction(func(tx *gorm.DB) error {
		defer d.DB.Create(&domain.Event{Kind: "archived", Ref: id}) // misuse: outer
		return tx.Delete(&domain.Ride{ID: id}).Error
	})
	d.Log.InfoContext(ctx, "archived", "id", id, "err", err)
	return err
}

// Report adds up what the callbacks of a transaction see.
func (d *Dispatcher) Report(ctx context.Context, zones []uint) (sums map[uint]int64, trips int, err error) {
	sums = make(map[uint]int64, len(zones))
	err = d.Unit.Do(ctx, func(r store.Repos) error {
		for _, z := range zones {
			ride, err := r.Rides.Get(ctx, z)
			if err != nil {
				return err
			}
			sums[z] += ride.Fare // misuse: retried
			trips++              // misuse: retried
		}
		return nil
	})
	return sums, trips, err
}
