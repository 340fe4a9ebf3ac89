// Package store has repositories that go where the transaction is.
package store

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/innocent/parcels/model"
	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// 1: a generic repository that is made anew for a transaction.
type Repo[T any] struct {
	db   *gorm.DB
	name string
}

func New[T any](db *gorm.DB, name string) *Repo[T] { return &Repo[T]{db, name} }

func (r *Repo[T]) In(tx *gorm.DB) *Repo[T] {
	inner := *r
	inner.db = tx
	return &inner
}

func (r *Repo[T]) Get(ctx context.Context, id uint) (*T, error) {
	t := new(T)
	return t, r.db.WithContext(ctx).First(t, id).Error
}

func (r *Repo[T]) Put(ctx context.Context, t *T) error {
	return r.db.WithContext(ctx).Save(t).Error
}

// 2: the lock is given to gorm.G itself.
func (r *Repo[T]) Locked(ctx context.Context, id uint) (T, error) {
	return gorm.G[T](r.db, gormlock.XactLock(gormlock.Key(r.name, id))).Where("id = ?", id).First(ctx)
}

// 3: clauses before gorm.G that are not ours.
func (r *Repo[T]) All(ctx context.Context) ([]T, error) {
	return gorm.G[T](r.db.Session(&gorm.Session{PrepareStmt: true}).Clauses(clause.Returning{})).Find(ctx)
}

// Parcels embeds it.
type Parcels struct {
	*Repo[model.Parcel]
	scans *Repo[model.Scan]
}

func NewParcels(db *gorm.DB) *Parcels {
	return &Parcels{New[model.Parcel](db, "parcel"), New[model.Scan](db, "scan")}
}

func (p *Parcels) In(tx *gorm.DB) *Parcels { return NewParcels(tx) }

// 4: everything on the transaction, by embedded and other repositories.
func (p *Parcels) Scan(ctx context.Context, id uint, place string) error {
	return p.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		in := p.In(tx)
		parcel, err := in.Get(ctx, id)
		if err != nil {
			return err
		}
		parcel.State = place
		if err := in.Put(ctx, parcel); err != nil {
			return err
		}
		return in.scans.Put(ctx, &model.Scan{ParcelID: id, Place: place})
	})
}

// 5: read first to decide, then read again under the lock.
func (p *Parcels) Reweigh(ctx context.Context, id uint, grams int64) error {
	seen, err := p.Get(ctx, id)
	if err != nil {
		return err
	}
	if seen.Weight == grams {
		return nil
	}
	return gormlock.Transaction(p.db.WithContext(ctx), func(tx *gorm.DB) error {
		now, err := p.In(tx).Get(ctx, id)
		if err != nil {
			return err
		}
		now.Weight = grams
		return p.In(tx).Put(ctx, now)
	}, gormlock.Locking(gormlock.Key("parcel", id)), gormlock.Attempts(3))
}

// 6: text that writes what the version does not guard.
func (p *Parcels) Seen(ctx context.Context, id uint, who string) error {
	return p.db.WithContext(ctx).Exec("UPDATE parcels SET last_seen = ? WHERE id = ?", who, id).Error
}

// 7: text that moves the version, put together.
func (p *Parcels) State(ctx context.Context, state string, ids ...uint) error {
	set := "state = ?, version = version + 1"
	return p.db.WithContext(ctx).Exec(fmt.Sprintf("UPDATE parcels SET %s WHERE id IN ?", set), state, ids).Error
}

// 8: a table without a tag, by its name.
func (p *Parcels) Forget(ctx context.Context, id uint) error {
	return p.db.WithContext(ctx).Table("scans").Where("parcel_id = ?", id).Update("place", "").Error
}

// 9: Table with the model.
func (p *Parcels) Old(ctx context.Context) error {
	return p.db.WithContext(ctx).Table("parcels").Model(&model.Parcel{}).Where("state = ?", "old").Update("weight", 0).Error
}

// 10: the table of another program that has the same ending.
func (p *Parcels) Backup(ctx context.Context) error {
	db := p.db.WithContext(ctx)
	return errors.Join(
		db.Exec("INSERT INTO archive.parcels SELECT * FROM parcels").Error,
		db.Exec("DELETE FROM archive.parcels WHERE state = 'gone'").Error,
		db.Exec("UPDATE parcels_import SET state = 'new'").Error,
	)
}

// Unit is a unit of work.
type Unit struct {
	Parcels *Parcels
	Vans    *Repo[model.Van]
}

// 11: a unit of work whose function only has the unit.
func Within(ctx context.Context, db *gorm.DB, fn func(u *Unit) error) error {
	return gormlock.Transaction(db.WithContext(ctx), func(tx *gorm.DB) error {
		return fn(&Unit{NewParcels(tx), New[model.Van](tx, "van")})
	}, gormlock.Attempts(5))
}

// 12: only the columns that were read are written.
func (p *Parcels) Rename(ctx context.Context, id uint) error {
	var parcel model.Parcel
	if err := p.db.WithContext(ctx).Select("id", "version", "state").First(&parcel, id).Error; err != nil {
		return err
	}
	parcel.State = "renamed"
	return p.db.WithContext(ctx).Select("state").Save(&parcel).Error
}
