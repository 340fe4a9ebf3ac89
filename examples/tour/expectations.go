package main

import (
	"errors"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// Article has a version, a count that is no reason for a conflict, and comments.
type Article struct {
	ID      int64
	Body    string
	Reads   int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// Comment changes what is to be read on an article's page, and not the article.
type Comment struct {
	ID        int64
	ArticleID int64
	Body      string
}

// article is a new article.
func (s *stage) article(body string) (Article, error) {
	a := Article{Body: body}
	if err := s.db.AutoMigrate(&a, &Comment{}); err != nil {
		return a, err
	}
	return a, s.db.Create(&a).Error
}

func expectations(s *stage) error {
	a, err := s.article("draft")
	if err != nil {
		return err
	}
	s.say("A form comes back with the version it was shown with, and no struct was read for it:")
	s.code(`db.Clauses(gormlock.ExpectVersion(form.Version)).Model(&Article{}).Where("id = ?", form.ID).Update("body", form.Body)`)
	submit := func(body string) error {
		return s.db.Clauses(gormlock.ExpectVersion(a.Version)).Model(&Article{}).Where("id = ?", a.ID).Update("body", body).Error
	}
	first, second := submit("hers"), submit("his")
	s.check(first == nil && errors.Is(second, gormlock.ErrStale), "two forms from version 1: one is stored, the other is told: %v", second)

	old := a
	if err := s.db.First(&a).Error; err != nil {
		return err
	}
	for _, step := range []func(current, old *Article) error{s.verify, s.touch, s.leaveAlone} {
		if err := step(&a, &old); err != nil {
			return err
		}
	}
	return nil
}

// verify decides by an article that it does not change.
func (s *stage) verify(current, old *Article) error {
	s.say("What is decided by reading a row is right as long as the row stays so:")
	s.code(`gormlock.VerifyVersion(tx, &article) // still as it was read, and so until tx ends`)
	err := s.db.Transaction(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, old) })
	s.check(errors.Is(err, gormlock.ErrStale), "who has read the draft: %v", err)
	return s.db.Transaction(func(tx *gorm.DB) error {
		if err := gormlock.VerifyVersion(tx, current); err != nil {
			return err
		}
		refused := s.plainly("update articles set body = 'otherwise' where id = $1", current.ID)
		s.check(gaveUp(refused), "who has read it since may decide; a writer waits meanwhile, and here gives up: %v", refused)
		return nil
	})
}

// touch adds a comment while somebody has the article open.
func (s *stage) touch(current, _ *Article) error {
	s.say("A comment is added, which is a row of another table. Whoever has the article open shall be told:")
	s.code(`tx.Create(&comment); gormlock.Touch(tx, &article)`)
	open := *current
	err := s.db.Transaction(func(tx *gorm.DB) error {
		return errors.Join(tx.Create(&Comment{ArticleID: current.ID, Body: "well said"}).Error, gormlock.Touch(tx, current))
	})
	if err != nil {
		return err
	}
	err = s.db.Save(&open).Error
	s.check(errors.Is(err, gormlock.ErrStale), "the article is at version %d with no column changed: %v", current.Version, err)
	return nil
}

// leaveAlone writes without moving the version, and without comparing it.
func (s *stage) leaveAlone(current, old *Article) error {
	s.say("And where the version shall not move, or not be compared:")
	s.code(`db.Clauses(gormlock.PreserveVersion()).Model(&article).Update("reads", 1)
db.Clauses(gormlock.IgnoreVersion()).Save(&old)`)
	before := current.Version
	if err := s.db.Clauses(gormlock.PreserveVersion()).Model(current).Update("reads", 1).Error; err != nil {
		return err
	}
	open := *current
	old.Body = "hers and his"
	err := errors.Join(s.db.First(current).Error, s.db.Clauses(gormlock.IgnoreVersion()).Save(old).Error)
	if err != nil {
		return err
	}
	s.check(current.Reads == 1 && current.Version == before, "a read is counted, and the article stays at version %d", current.Version)
	err = s.db.First(current).Error
	told := s.db.Save(&open).Error
	s.check(err == nil && current.Body == old.Body && errors.Is(told, gormlock.ErrStale), "what is forced is stored, and who has the row open is told: %v", told)
	return nil
}
