package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/examples/internal/place"
	"github.com/gormlock/gormlock/sessionlock"
)

// What a writer is told by its environment.
const (
	writerDSN    = "FENCEDWRITER_DSN"
	writerSchema = "FENCEDWRITER_SCHEMA"
	writerGuard  = "FENCEDWRITER_GUARD" // lock or token
)

// writer does what it is told until its input ends.
func writer(ctx context.Context, in io.Reader, out io.Writer) error {
	p, err := place.At(os.Getenv(writerDSN), os.Getenv(writerSchema))
	if err != nil {
		return err
	}
	defer func() { _ = p.Leave() }()
	m, err := sessionlock.OpenConfig(ctx, p.Config)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close(ctx) }()

	var lock *sessionlock.Lock
	for lines := bufio.NewScanner(in); lines.Scan(); {
		order, text, _ := strings.Cut(lines.Text(), " ")
		var answer any
		switch order {
		case "acquire":
			if lock, err = m.Acquire(ctx, gormlock.Key("report", p.Schema, 1), sessionlock.Fenced()); err == nil {
				answer = lock.PID()
			}
		case "write":
			answer, err = save(p.DB.WithContext(ctx), lock, text)
		case "held?":
			<-lock.Lost()
			answer = lock.Err()
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return err
		}
	}
	return nil
}

// Report is written by one holder of the lock on "report" after the other.
type Report struct {
	ID    int64
	Body  string
	Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
}

// save writes the report as the holder of the lock. Between the lock and the statement any time can pass: only what is
// in the statement itself is true when it runs.
func save(db *gorm.DB, lock *sessionlock.Lock, body string) (string, error) {
	guard := gormlock.Fence(lock.Token()) // db.WithContext with the context of lock.Bind does the same
	if os.Getenv(writerGuard) == "lock" {
		guard = gormlock.IgnoreFence()
	}
	err := db.Clauses(guard).Model(&Report{ID: 1}).Update("body", body).Error
	if errors.Is(err, gormlock.ErrFenced) {
		return "refused: " + err.Error(), nil
	}
	return "1 row changed", err
}
