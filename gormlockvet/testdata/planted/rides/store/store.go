// Package store has the repositories, one generic and some around it.
package store

import (
	"context"
	"fmt"

	"example.com/shop/planted/rides/domain"
	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

// Repo keeps one kind of struct.
type Repo[T any] struct {
	db   *gorm.DB
	name string
}

func New[T any](db *gorm.DB, name string) *Repo[T] { return &Repo[T]{db: db, name: name} }

func (r *Repo[T]) With(tx *gorm.DB) *Repo[T] { return &Repo[T]{db: tx, name: r.name} }

func (r *Repo[T]) Get(ctx context.Context, id uint) (*T, error) {
	var t T
	if err := r.db.WithContext(ctx).First(&t, id).Error; err != nil {
		return nil, fmt.Errorf("%s %d: %w", r.name, id, err)
	}
	return &t, nil
}

func (r *Repo[T]) Put(ctx context.Context, t *T) error {
	return r.db.WithContext(ctx).Save(t).Error
}

func (r *Repo[T]) Locked(ctx context.Context, id uint) (T, error) {
	locked := r.db.Scopes(gormlock.WithXactLock(gormlock.Key(r.name, id)))
	return gorm.G[T](locked).Where("id = ?", id).First(ctx) // misuse: dropped
}

// Outbox collects events, and keeps those that are to be sent.
type Outbox struct {
	pending []domain.Event
}

func (o *Outbox) Emit(tx *gorm.DB, kind string, ref uint) error {
	e := domain.Event{Kind: kind, Ref: ref}
	if err := tx.Create(&e).Error; err != nil {
		return err
	}
	o.pending = append(o.pending, e)
	return nil
}

// Rides are kept by the generic repository.
type Rides struct {
	*Repo[domain.Ride]
	outbox *Outbox
}

func NewRides(db *gorm.DB, outbox *Outbox) *Rides {
	return &Rides{Repo: New[domain.Ride](db, "ride"), outbox: outbox}
}

func (r *Rides) Assign(ctx context.Context, id, driver uint) error {
	return r.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		ride, err := r.Get(ctx, id) // misuse: outer
		if err != nil {
			return err
		}
		ride.DriverID = &driver
		return r.With(tx).Put(ctx, ride)
	})
}

func (r *Rides) Finish(ctx context.Context, ride *domain.Ride) error {
	return gormlock.Transaction(r.db.WithContext(ctx), func(tx *gorm.DB) error {
		ride.State = "finished"
		if err := tx.Save(ride).Error; err != nil {
			return err
		}
		return r.outbox.Emit(tx, "finished", ride.ID) // misuse: retried
	}, gormlock.Attempts(10))
}

// Repos are the repositories of one transaction.
type Repos struct {
	Rides   *Repo[domain.Ride]
	Drivers *Repo[domain.Driver]
}

// Unit runs functions with repositories of one transaction.
type Unit struct{ db *gorm.DB }

func NewUnit(db *gorm.DB) *Unit { return &Unit{db: db} }

func (u *Unit) Do(ctx context.Context, fn func(r Repos) error) error {
	return gormlock.Transaction(u.db.WithContext(ctx), func(tx *gorm.DB) error {
		return fn(Repos{Rides: New[domain.Ride](tx, "ride"), Drivers: New[domain.Driver](tx, "driver")})
	}, gormlock.Attempts(5))
}

// Reset is called by support.
func (u *Unit) Reset(ctx context.Context, driver uint) error {
	const text = `
		WITH idle AS (SELECT id FROM fleet.drivers WHERE id = @id)
		UPDATE fleet.drivers d SET status = 'idle' FROM idle WHERE d.id = idle.id`
	return u.db.WithContext(ctx).Exec(text, map[string]any{"id": driver}).Error // misuse: around
}
