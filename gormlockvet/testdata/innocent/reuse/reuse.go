// Package reuse takes its repositories into transactions on all the ways that programs know.
package reuse

import (
	"context"
	"errors"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"gorm.io/gorm"
)

type User struct {
	ID      uint
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Note struct{ ID uint }

// 1: a copy by a value receiver.
type Users struct {
	db   *gorm.DB
	name string
}

func (r Users) WithTx(tx *gorm.DB) Users {
	r.db = tx
	return r
}

func (r Users) Save(u *User) error { return r.db.Save(u).Error }

func (r Users) Twice(a, b *User) error {
	return r.db.Transaction(func(tx *gorm.DB) error {
		if err := r.WithTx(tx).Save(a); err != nil {
			return err
		}
		in := r.WithTx(tx)
		if err := in.db.Create(&Note{}).Error; err != nil {
			return err
		}
		return in.Save(b)
	})
}

// 2: the same with a base that is embedded.
type Base struct{ DB *gorm.DB }

type Notes struct {
	Base
	users Users
}

func (n Notes) WithTx(tx *gorm.DB) Notes {
	n.Base.DB = tx
	n.users = n.users.WithTx(tx)
	return n
}

func (n Notes) Add() error { return n.DB.Create(&Note{}).Error }

func (n Notes) Both(u *User) error {
	return n.DB.Transaction(func(tx *gorm.DB) error {
		in := n.WithTx(tx)
		return errors.Join(in.Add(), in.users.Save(u), in.DB.Create(&Note{}).Error)
	})
}

// 3: a service that is copied inside.
type Service struct {
	db    *gorm.DB
	users Users
	notes *Notes
}

func (s Service) inTx(fn func(s Service) error) error {
	return s.db.Transaction(func(tx *gorm.DB) error {
		s := s
		s.db = tx
		s.users = s.users.WithTx(tx)
		return fn(s)
	})
}

func (s Service) Rename(u *User) error {
	return s.inTx(func(s Service) error {
		if err := s.db.Create(&Note{}).Error; err != nil {
			return err
		}
		return s.users.Save(u)
	})
}

// 4: a clone by a pointer.
func (s *Service) clone(tx *gorm.DB) *Service {
	c := new(Service)
	*c = *s
	c.db = tx
	return c
}

func (s *Service) note() error { return s.db.Create(&Note{}).Error }

func (s *Service) Cloned() error {
	return s.db.Transaction(func(tx *gorm.DB) error {
		c := s.clone(tx)
		return errors.Join(c.note(), c.db.Create(&Note{}).Error)
	})
}

// 5: an interface that returns itself.
type Repo interface {
	In(tx *gorm.DB) Repo
	Put(u *User) error
}

type repo struct{ db *gorm.DB }

func (r *repo) In(tx *gorm.DB) Repo { return &repo{tx} }

func (r *repo) Put(u *User) error { return r.db.Save(u).Error }

type Shop struct {
	db   *gorm.DB
	repo Repo
}

func (s *Shop) Put(u *User) error {
	return gormlock.Transaction(s.db, func(tx *gorm.DB) error { return s.repo.In(tx).Put(u) }, gormlock.Attempts(3))
}

// 6: the field is swapped for the time of the transaction.
func (s *Shop) swapped(u *User) error {
	return s.db.Transaction(func(tx *gorm.DB) error {
		before := s.db
		s.db = tx
		defer func() { s.db = before }()
		return s.db.Save(u).Error
	})
}

// 7: kept in a struct that is made for it.
type unit struct {
	tx  *gorm.DB
	ctx context.Context
}

func (u *unit) save(x *User) error { return u.tx.WithContext(u.ctx).Save(x).Error }

func (s *Shop) unit(ctx context.Context, x *User) error {
	var u unit
	u.ctx = ctx
	return s.db.Transaction(func(tx *gorm.DB) error {
		u.tx = tx
		return errors.Join(u.save(x), u.tx.Create(&Note{}).Error)
	})
}

// 8: steps in a list.
func (s *Shop) steps(x *User) error {
	steps := []func(tx *gorm.DB) error{
		func(tx *gorm.DB) error { return tx.Save(x).Error },
		func(tx *gorm.DB) error { return s.repo.In(tx).Put(x) },
	}
	return s.db.Transaction(func(tx *gorm.DB) error {
		for _, step := range steps {
			if err := step(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// 9: what collects is made for each attempt, even if a method appends to it.
type outbox struct{ events []Note }

func (o *outbox) emit(tx *gorm.DB) error {
	n := Note{}
	if err := tx.Create(&n).Error; err != nil {
		return err
	}
	o.events = append(o.events, n)
	return nil
}

func (s *Shop) emit(send func([]Note)) error {
	var out *outbox
	err := gormlock.Transaction(s.db, func(tx *gorm.DB) error {
		out = &outbox{}
		return out.emit(tx)
	}, gormlock.Attempts(3))
	if err != nil {
		return err
	}
	kept := outbox{}
	err = gormlock.Transaction(s.db, func(tx *gorm.DB) error {
		kept.events = nil
		return kept.emit(tx)
	}, gormlock.Attempts(3))
	send(append(out.events, kept.events...))
	return err
}

// 10: a ctx that is made of the one that was given, and kept in a struct.
func (s *Shop) leased(ctx context.Context, leases *lease.Manager, x *User) error {
	return leases.Do(ctx, gormlock.Key("shop"), 30, func(ctx context.Context) error {
		u := &unit{tx: s.db, ctx: ctx}
		return u.save(x)
	})
}

// 11: a wrapper that returns a function, whose function uses what it is given.
func (s *Shop) job(fn func(tx *gorm.DB) error) func() error {
	return func() error { return gormlock.Transaction(s.db, fn, gormlock.Attempts(2)) }
}

func (s *Shop) jobs(x *User) []func() error {
	n := 0
	count := func() int { n++; return n }
	return []func() error{
		s.job(func(tx *gorm.DB) error { return tx.Save(x).Error }),
		func() error { count(); return s.db.Create(&Note{}).Error },
	}
}

// 12: a query that is built in more ways than anybody can count, in a variable that a function captures.
func (s *Shop) search(filter [20]string, out *[]User) (n int64, err error) {
	q := s.db.Model(&User{})
	if filter[0] != "" {
		q = q.Where("c0 = ?", filter[0])
	}
	if filter[1] != "" {
		q = q.Where("c1 = ?", filter[1])
	}
	if filter[2] != "" {
		q = q.Where("c2 = ?", filter[2])
	}
	if filter[3] != "" {
		q = q.Where("c3 = ?", filter[3])
	}
	if filter[4] != "" {
		q = q.Where("c4 = ?", filter[4])
	}
	if filter[5] != "" {
		q = q.Where("c5 = ?", filter[5])
	}
	if filter[6] != "" {
		q = q.Where("c6 = ?", filter[6])
	}
	if filter[7] != "" {
		q = q.Where("c7 = ?", filter[7])
	}
	if filter[8] != "" {
		q = q.Where("c8 = ?", filter[8])
	}
	if filter[9] != "" {
		q = q.Where("c9 = ?", filter[9])
	}
	if filter[10] != "" {
		q = q.Where("c10 = ?", filter[10])
	}
	if filter[11] != "" {
		q = q.Where("c11 = ?", filter[11])
	}
	if filter[12] != "" {
		q = q.Where("c12 = ?", filter[12])
	}
	if filter[13] != "" {
		q = q.Where("c13 = ?", filter[13])
	}
	if filter[14] != "" {
		q = q.Where("c14 = ?", filter[14])
	}
	if filter[15] != "" {
		q = q.Where("c15 = ?", filter[15])
	}
	if filter[16] != "" {
		q = q.Where("c16 = ?", filter[16])
	}
	if filter[17] != "" {
		q = q.Where("c17 = ?", filter[17])
	}
	if filter[18] != "" {
		q = q.Where("c18 = ?", filter[18])
	}
	if filter[19] != "" {
		q = q.Where("c19 = ?", filter[19])
	}
	count := func() error { return q.Count(&n).Error }
	if err := count(); err != nil {
		return 0, err
	}
	return n, s.db.Transaction(func(tx *gorm.DB) error {
		return tx.Where("id IN (?)", q.Select("id")).Find(out).Error
	})
}
