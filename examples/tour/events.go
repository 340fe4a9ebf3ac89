package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/observe"
)

// events are told to an observer.
func events(s *stage) error {
	s.say("A refusal is an error to whoever asked, and an event to whoever watches: slog, OpenTelemetry (observe/otelobserve), " +
		"or a function of your own that counts. A lock that was not got, and then a transaction that ran again:")
	s.code(`db.Use(gormlock.New(gormlock.WithObserver(observe.Slog(logger))))`)
	heard := make(lines, 10)
	logger := slog.New(slog.NewTextHandler(heard, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	db, done, err := s.another(s.config, gormlock.WithObserver(observe.Slog(logger)))
	if err != nil {
		return err
	}
	defer func() { _ = done() }() // the connections go with the tour

	key := s.key("report")
	release, err := s.hold(key)
	if err != nil {
		return err
	}
	refused := db.Transaction(try(key))
	if err := release(); err != nil {
		return err
	}
	a, err := s.article("draft")
	if err != nil {
		return err
	}
	runs := 0
	err = gormlock.Transaction(db, func(tx *gorm.DB) error {
		var mine Article
		if err := tx.First(&mine, a.ID).Error; err != nil {
			return err
		}
		if runs++; runs == 1 { // somebody else comes in between
			if err := s.db.Model(&a).Update("body", "hers").Error; err != nil {
				return err
			}
		}
		return tx.Model(&mine).Update("body", "his").Error
	}, gormlock.Attempts(2))
	if err != nil {
		return err
	}
	for _, want := range []observe.Kind{observe.NotAcquired, observe.Stale, observe.Retried} {
		line, err := heard.next(s.ctx)
		if err != nil {
			return err
		}
		s.check(errors.Is(refused, gormlock.ErrNotAcquired) && strings.Contains(line, want.String()), "%s", line)
	}
	s.say("Locks got and given back are at the level of debugging, with how long they were waited for and held.")
	return nil
}

// lines are what a logger writes.
type lines chan string

func (l lines) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

// next is the next line. It may come after the call that it tells of.
func (l lines) next(ctx context.Context) (string, error) {
	select {
	case line := <-l:
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
