package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/examples/internal/tally"
)

//go:embed shop.rb
var shop string

// rails is the other program: a Ruby process, or the stand-in.
type rails interface {
	// perform does a task with all its workers.
	perform(ctx context.Context, task string, accounts []int64) (tally.Report, error)
	name() string
	close() error
}

// process is shop.rb in a Ruby process.
type process struct {
	ruby    *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
	version string
	sent    []string // the statements that ActiveRecord sent
}

// hasRails reports whether there is a Ruby with ActiveRecord here.
func hasRails(ctx context.Context) bool {
	return exec.CommandContext(ctx, "ruby", "-W0", "-e", `require "active_record"; require "pg"`).Run() == nil
}

// startRails starts shop.rb, which makes its tables.
func startRails(ctx context.Context, config *pgx.ConnConfig) (*process, error) {
	p := &process{ruby: exec.CommandContext(ctx, "ruby", "-W0", "-e", shop)}
	p.ruby.Stderr = os.Stderr
	var err error
	if p.input, err = p.ruby.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.ruby.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.output = bufio.NewReader(output)
	if err := p.ruby.Start(); err != nil {
		return nil, err
	}
	var ready struct{ Version string }
	err = p.ask(map[string]any{
		"workers": workers, "each": each,
		"database": map[string]any{
			"host": config.Host, "port": config.Port, "database": config.Database, "username": config.User,
			"password": config.Password, "schema_search_path": config.RuntimeParams["search_path"],
		},
	}, &ready)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.version = ready.Version
	return p, nil
}

// ask writes a line and reads the answer.
func (p *process) ask(request, answer any) error {
	if err := json.NewEncoder(p.input).Encode(request); err != nil {
		return fmt.Errorf("ruby: %w", err)
	}
	line, err := p.output.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("ruby ended: %w", err)
	}
	return json.Unmarshal(line, answer)
}

func (p *process) perform(_ context.Context, task string, accounts []int64) (tally.Report, error) {
	var answer struct {
		tally.Report
		Sent []string
	}
	err := p.ask(map[string]any{"task": task, "accounts": accounts}, &answer)
	p.sent = answer.Sent
	return answer.Report, err
}

func (p *process) name() string { return "Rails (ActiveRecord " + p.version + ")" }

func (p *process) close() error {
	return errors.Join(p.input.Close(), p.ruby.Wait())
}
