package main

import (
	"errors"

	"github.com/gormlock/gormlock"
)

// Ticket stands in a table that gets no version.
type Ticket struct {
	ID    int64
	State string
	Note  string
}

// systemTicket is the same table, with the version that PostgreSQL keeps.
type systemTicket struct {
	ID    int64
	State string
	Xmin  uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
}

func (systemTicket) TableName() string { return "tickets" }

func unversionedTables(s *stage) error {
	s.say("A table that gets no version column: a write names the columns that it was decided by:")
	s.code(`db.Model(&ticket).Clauses(gormlock.IfUnchanged(&ticket, "state")).Update("state", "closed")`)
	ticket := Ticket{State: "open"}
	if err := errors.Join(s.db.AutoMigrate(&ticket), s.db.Create(&ticket).Error); err != nil {
		return err
	}
	hers, his := ticket, ticket
	if err := s.db.Model(&Ticket{ID: ticket.ID}).Update("note", "called back").Error; err != nil {
		return err
	}
	decide := func(mine *Ticket, state string) error {
		return s.db.Model(mine).Clauses(gormlock.IfUnchanged(mine, "state")).Update("state", state).Error
	}
	first, second := decide(&hers, "closed"), decide(&his, "assigned")
	s.check(first == nil, "she closes what she saw open; that its note has changed is no matter")
	s.check(errors.Is(second, gormlock.ErrStale), "he assigns what he saw open, and is told: %v", second)

	s.say("PostgreSQL notes in every row which transaction wrote it: a version that no table has to be changed for:")
	s.code("Xmin uint32 `gorm:\"column:xmin;->;-:migration\" gormlock:\"version,xmin\"`")
	var mine, yours systemTicket
	if err := errors.Join(s.db.First(&mine, ticket.ID).Error, s.db.First(&yours, ticket.ID).Error); err != nil {
		return err
	}
	first, second = s.db.Model(&mine).Update("state", "open").Error, s.db.Model(&yours).Update("state", "assigned").Error
	s.check(first == nil && errors.Is(second, gormlock.ErrStale), "the second of two writers is told: %v", second)
	return s.script()
}

// script lets a script write to a table with a version, which it does not move.
func (s *stage) script() error {
	s.say("A script corrects a text and does not know that the row has a version:")
	a, err := s.article("draft")
	if err != nil {
		return err
	}
	s.code("update articles set body = 'corrected' where …")
	const corrected = "update articles set body = 'corrected' where id = $1"
	run := func() (saved, err error) {
		if err := errors.Join(s.db.First(&a).Error, s.plainly(corrected, a.ID)); err != nil {
			return nil, err
		}
		a.Body = "mine"
		return s.db.Save(&a).Error, s.db.First(&Article{}, a.ID).Error
	}
	saved, err := run()
	if err != nil {
		return err
	}
	s.check(saved == nil, "who had the article open saves it, is told nothing, and the correction is lost")
	s.code(`db.Exec(gormlock.VersionTrigger("articles", "version")) // once, in a migration`)
	if err := s.db.Exec(gormlock.VersionTrigger("articles", "version")).Error; err != nil {
		return err
	}
	if saved, err = run(); err != nil {
		return err
	}
	s.check(errors.Is(saved, gormlock.ErrStale), "with the trigger the same script moves the version: %v", saved)
	var current Article
	if err := s.db.First(&current, a.ID).Error; err != nil {
		return err
	}
	before := current.Version
	err = errors.Join(s.db.Save(&current).Error, s.db.First(&current, a.ID).Error)
	s.check(err == nil && current.Version == before+1, "and writers that move it themselves are left alone: from %d to %d", before, current.Version)
	s.say("Rails and Hibernate move versions by rules of their own. The tags version,rails and version,hibernate follow them.")
	return err
}
