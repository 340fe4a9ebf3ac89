package main

import (
	"errors"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// Document is what two people have open at the same time.
type Document struct {
	ID      int64
	Body    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// unversioned is the same table without the version.
type unversioned struct {
	ID   int64
	Body string
}

func (unversioned) TableName() string { return "documents" }

func versions(s *stage) error {
	s.say("Two people open one document. The first saves, then the second. No lock helps: nobody holds one for as long as " +
		"a person thinks. A version column tells the second:")
	s.code("type Document struct {\n\tID      int64\n\tBody    string\n\tVersion int64 `gorm:\"not null;default:1\" gormlock:\"version\"`\n}")
	d := Document{Body: "draft"}
	err := errors.Join(s.db.AutoMigrate(&d), s.db.Create(&d).Error)
	if err != nil {
		return err
	}

	one, two := unversioned{ID: d.ID}, unversioned{ID: d.ID}
	err = errors.Join(s.db.First(&one).Error, s.db.First(&two).Error)
	one.Body, two.Body = "hers", "his"
	err = errors.Join(err, s.db.Save(&one).Error, s.db.Save(&two).Error, s.db.First(&d).Error)
	if err != nil {
		return err
	}
	s.check(d.Body == "his", "without the column both are told that they have saved; the document is %s, hers is lost", d.Body)

	hers, his := d, d
	hers.Body, his.Body = "hers again", "his again"
	first, second := s.db.Save(&hers).Error, s.db.Save(&his).Error
	var stale *gormlock.StaleError
	err = s.db.First(&d).Error
	s.check(first == nil && errors.As(second, &stale), "with it the second is told: %v", second)
	s.check(err == nil && d.Body == "hers again", "and the document is %s", d.Body)

	undone := errors.New("something later failed")
	err = s.db.Transaction(func(tx *gorm.DB) error {
		hers.Body = "never stored"
		return errors.Join(tx.Save(&hers).Error, undone)
	})
	s.check(errors.Is(err, undone) && hers.Version == d.Version,
		"after a rollback the struct is at version %d again, as the row is, and cannot overwrite what comes meanwhile", hers.Version)
	return nil
}

// Visits is one hot row: everybody counts on it.
type Visits struct {
	ID      int64
	N       int
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func hotRow(s *stage) error {
	const writers, each = 16, 50
	s.say("Sixteen goroutines count to fifty on one row. Each reads it, adds one and saves it, without any lock; who comes too " +
		"late gets ErrStale, and Attempts runs the whole transaction again:")
	s.code("gormlock.Transaction(db, func(tx *gorm.DB) error {\n\tvar v Visits\n\tif err := tx.First(&v, id).Error; err != nil {\n" +
		"\t\treturn err\n\t}\n\tv.N++\n\treturn tx.Save(&v).Error\n}, gormlock.Attempts(20))")
	hot := Visits{}
	if err := errors.Join(s.db.AutoMigrate(&hot), s.db.Create(&hot).Error); err != nil {
		return err
	}
	var again atomic.Int64
	err := together(writers, each, func() error {
		return gormlock.Transaction(s.db, func(tx *gorm.DB) error {
			var v Visits
			if err := tx.First(&v, hot.ID).Error; err != nil {
				return err
			}
			v.N++
			return tx.Save(&v).Error
		}, gormlock.Attempts(20), gormlock.OnRetry(func(int, error) { again.Add(1) }))
	})
	if err := errors.Join(err, s.db.First(&hot, hot.ID).Error); err != nil {
		return err
	}
	s.check(hot.N == writers*each, "the row counts %d, after %d transactions that ran again", hot.N, again.Load())
	return nil
}

// Profile is a form of several fields.
type Profile struct {
	ID          int64
	Name, Email string
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

func merging(s *stage) error {
	s.say("Two people edit one form, each another field. Nothing collides, so both changes are stored; base is the form as it was shown:")
	s.code("err := gormlock.SaveMerged(db, &mine, &base)")
	base := Profile{Name: "Ann", Email: "ann@example.com"}
	if err := errors.Join(s.db.AutoMigrate(&base), s.db.Create(&base).Error); err != nil {
		return err
	}
	hers, his := base, base
	hers.Name, his.Email = "Anna", "anna@example.com"
	err := errors.Join(gormlock.SaveMerged(s.db, &hers, &base), gormlock.SaveMerged(s.db, &his, &base))
	s.check(err == nil && his.Name == "Anna" && his.Email == "anna@example.com", "the row has both changes: %s, %s", his.Name, his.Email)

	his.Name = "Annie"
	err = gormlock.SaveMerged(s.db, &his, &base)
	var conflict *gormlock.ConflictError
	s.check(errors.As(err, &conflict) && len(conflict.Columns) == 1, "where both changed one field, the second is told: %v", err)
	return nil
}
