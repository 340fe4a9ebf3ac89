package main

import (
	"errors"

	"github.com/gormlock/gormlock"
)

// misspelled is a model with a tag that nobody would read.
type misspelled struct {
	ID      int64
	Version int64 `gormlok:"version"` //gormlockvet:ignore tags this is the mistake that is shown
}

// Price is a model that is made here.
type Price struct {
	ID      int64
	Amount  int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func tables(s *stage) error {
	s.say("At start a program makes its tables and looks at its models. Ten copies of it may start at once: one migrates, " +
		"the others wait, and all or nothing is done:")
	s.code("gormlock.AutoMigrate(db, &Price{}) // GORM's AutoMigrate in one transaction, under a lock")
	s.code("gormlock.MigrateAll(db)            // gormlock's own tables, where they are missing")
	s.code("gormlock.Check(db, &Price{})       // tags, tables and columns, in one error")
	const programs = 10
	ended := make(chan error, programs)
	for range programs {
		go func() { ended <- errors.Join(gormlock.AutoMigrate(s.db, &Price{}), gormlock.MigrateAll(s.db)) }()
	}
	var err error
	for range programs {
		err = errors.Join(err, <-ended)
	}
	s.check(err == nil && s.db.Create(&Price{Amount: 7}).Error == nil, "%d programs have started, each with its tables", programs)
	right, wrong := gormlock.Check(s.db, &Price{}), gormlock.Check(s.db, &misspelled{})
	s.check(right == nil && wrong != nil, "Check finds nothing wrong with Price, and of a misspelled tag it says: %v", wrong)
	return nil
}
