package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/examples/internal/place"
	"github.com/gormlock/gormlock/fence"
)

// newPlace makes the report and the table of the tokens.
func newPlace(ctx context.Context, dsn string) (*place.Place, error) {
	p, err := place.New(ctx, dsn, "fencedwriter")
	if err != nil {
		return nil, err
	}
	if err = fence.Migrate(ctx, p.Pool); err == nil {
		err = errors.Join(p.DB.AutoMigrate(&Report{}), p.DB.Clauses(gormlock.IgnoreFence()).Create(&Report{}).Error)
	}
	if err != nil {
		return nil, errors.Join(err, p.Leave())
	}
	return p, nil
}

func reported(p *place.Place) (body string, err error) {
	err = p.DB.Model(&Report{ID: 1}).Pluck("body", &body).Error
	return body, err
}

// process is a writer that does what it is told, line by line.
type process struct {
	cmd     *exec.Cmd
	tell    io.WriteCloser
	answers *bufio.Scanner
}

// start starts a writer: this program again, told by its environment what it is.
func start(p *place.Place, guard string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &process{cmd: exec.Command(self)} //nolint:noctx // ends with its input
	w.cmd.Env = append(os.Environ(), writerDSN+"="+p.DSN, writerSchema+"="+p.Schema, writerGuard+"="+guard)
	w.cmd.Stderr = os.Stderr
	if w.tell, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.answers = bufio.NewScanner(answers)
	return w, w.cmd.Start()
}

func (w *process) ask(what string) (string, error) {
	if _, err := fmt.Fprintln(w.tell, what); err != nil {
		return "", err
	}
	if !w.answers.Scan() {
		return "", fmt.Errorf("the writer ended at %q: %w", what, errors.Join(w.answers.Err(), io.ErrUnexpectedEOF))
	}
	return w.answers.Text(), nil
}

func (w *process) end() {
	_ = w.tell.Close()
	_ = w.cmd.Wait() // it has said on its standard error what went wrong
}
