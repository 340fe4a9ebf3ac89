package main

import (
	"errors"

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
