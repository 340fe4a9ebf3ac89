package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/lockkey"
)

// looking asks who holds what, while one waits for the holder of a lock and another for the one who waits.
func looking(s *stage) error {
	s.say("It hangs. Who holds the lock?")
	s.code(`view, err := inspect.Snapshot(ctx, db)                 // in a program
gormlock ls; gormlock watch; gormlock why PID          // in a terminal
http.Handle("/locks", onlyAdmins(inspect.Handler(db))) // in a browser, or as JSON`)
	first, second := s.key("invoice", 42), s.key("invoice", 43)
	release, err := s.hold(first)
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() {
		ended <- gormlock.Transaction(s.db, func(tx *gorm.DB) error {
			return gormlock.AcquireXactLock(tx, []lockkey.Key{first})
		}, gormlock.Locking(second))
	}()
	started := 1
	if err = s.blocked(); err == nil {
		started++
		go func() {
			ended <- gormlock.Transaction(s.db, func(*gorm.DB) error { return nil }, gormlock.Locking(second))
		}()
	}
	var tree []*inspect.Node
	if err == nil {
		tree, err = s.chain(first, second)
	}
	status, page := s.browse(first, second)
	err = errors.Join(err, release())
	for range started {
		err = errors.Join(err, <-ended)
	}
	if err != nil {
		return err
	}
	s.check(len(tree) == 1, "who holds it, who waits for the holder, and who waits for the one who waits:")
	for _, node := range tree {
		s.branch(node, 0)
	}
	s.check(status == http.StatusOK && strings.Contains(page, first.String()) && strings.Contains(page, second.String()),
		"the page answers %d, and names both locks, in %d kB that load nothing from elsewhere", status, len(page)>>10)
	s.say("Keys are numbers to PostgreSQL. Their names come from inspect.Known, or from a table that gormlock.WithKeyNames keeps.")
	return nil
}

// browse is what a browser gets from the page.
func (s *stage) browse(keys ...lockkey.Key) (status int, html string) {
	page := inspect.Handler(s.outside, inspect.Known(keys...))
	defer func() { _ = page.Close() }() // it never fails
	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, httptest.NewRequestWithContext(s.ctx, http.MethodGet, "/locks", nil))
	return answer.Code, answer.Body.String()
}

// chain is the tree of this tour's sessions, as soon as somebody in it waits for one who waits.
func (s *stage) chain(keys ...lockkey.Key) ([]*inspect.Node, error) {
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	for {
		view, err := inspect.Snapshot(ctx, s.outside, inspect.Known(keys...))
		if err != nil {
			return nil, err
		}
		tree := slices.DeleteFunc(inspect.Tree(view), func(n *inspect.Node) bool { return !strings.HasPrefix(n.Application, s.name) })
		if len(tree) > 0 && len(tree[0].Waiters) > 0 && len(tree[0].Waiters[0].Waiters) > 0 {
			return tree, nil
		}
	}
}

// branch shows a session, and below it those who wait for it.
func (s *stage) branch(n *inspect.Node, depth int) {
	text := fmt.Sprintf("backend %d", n.PID)
	for _, held := range n.Holds {
		text += " holds " + held.Key
	}
	if n.Wait != nil {
		text += " waits for " + n.Wait.Key
	}
	s.line("          " + strings.Repeat("   ", depth) + text)
	for _, waiter := range n.Waiters {
		s.branch(waiter, depth+1)
	}
}
