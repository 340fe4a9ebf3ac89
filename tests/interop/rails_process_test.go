package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// howToGetRails is the cure for a machine without it.
const howToGetRails = "these tests need Ruby with ActiveRecord and pg: " +
	"make rails, or apt-get install ruby-activerecord ruby-pg (Debian, Ubuntu), or gem install activerecord pg"

// railsProcess is one Ruby process that runs rails.rb for all tests.
type railsProcess struct {
	input io.Writer

	mu      sync.Mutex
	last    int
	waiting map[int]chan<- railsAnswer
	ended   error
}

type railsAnswer struct {
	ID    int             `json:"id"`
	Value json.RawMessage `json:"value"`
	Error *railsError     `json:"error"`
}

// railsError is an exception of the Ruby code.
type railsError struct {
	Class   string `json:"class"`
	Message string `json:"message"`
	Action  string `json:"action"` // of a StaleObjectError
}

func (e *railsError) Error() string { return e.Class + ": " + e.Message }

// startRails starts the process. It ends when the test and its subtests do.
func startRails(t *testing.T) *railsProcess {
	t.Helper()
	if said, err := exec.CommandContext(t.Context(), "ruby", "-e", `require "active_record"; require "pg"`).CombinedOutput(); err != nil {
		if os.Getenv("GORMLOCK_WITHOUT_RAILS") != "" {
			t.Skip("left out by GORMLOCK_WITHOUT_RAILS: there is no ActiveRecord here")
		}
		t.Fatalf("%v: %s\n%s", err, said, howToGetRails)
	}
	config, err := pgx.ParseConfig(pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "ruby", "-W0", "rails.rb")
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &railsProcess{input: input, waiting: map[int]chan<- railsAnswer{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read(output)
	}()
	t.Cleanup(func() {
		_ = input.Close()
		<-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("ruby: %v", err)
		}
	})
	database := map[string]any{
		"host": config.Host, "port": config.Port, "database": config.Database,
		"username": config.User, "password": config.Password,
	}
	if err := json.NewEncoder(input).Encode(database); err != nil {
		t.Fatal(err)
	}
	return p
}

// read hands the answers to those who wait for them, until the process ends.
func (p *railsProcess) read(output io.Reader) {
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadBytes('\n')
		var answer railsAnswer
		if err == nil {
			err = json.Unmarshal(line, &answer)
		}
		p.mu.Lock()
		if err != nil {
			p.ended = fmt.Errorf("ruby ended: %w: %s", err, line)
			for id, waiting := range p.waiting {
				waiting <- railsAnswer{Error: &railsError{Class: "Ended", Message: p.ended.Error()}}
				delete(p.waiting, id)
			}
			p.mu.Unlock()
			return
		}
		p.waiting[answer.ID] <- answer
		delete(p.waiting, answer.ID)
		p.mu.Unlock()
	}
}

// request sends one request. The answer comes on the channel.
func (p *railsProcess) request(session, schema string, code any) <-chan railsAnswer {
	answer := make(chan railsAnswer, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		answer <- railsAnswer{Error: &railsError{Class: "Ended", Message: p.ended.Error()}}
		return answer
	}
	p.last++
	p.waiting[p.last] = answer
	request := map[string]any{"id": p.last, "session": session, "schema": schema, "code": code}
	if err := json.NewEncoder(p.input).Encode(request); err != nil {
		answer <- railsAnswer{Error: &railsError{Class: "Ended", Message: err.Error()}}
		delete(p.waiting, p.last)
	}
	return answer
}

// rails is a session of the Rails program: a thread with a connection.
type rails struct {
	process *railsProcess
	name    string
	schema  string
}

// session opens a session on the test's own schema.
func (p *railsProcess) session(t *testing.T, name string) *rails {
	t.Helper()
	config, err := pgx.ParseConfig(pgtest.SchemaDSN(t))
	if err != nil {
		t.Fatal(err)
	}
	r := &rails{process: p, name: t.Name() + "/" + name, schema: config.RuntimeParams["search_path"]}
	t.Cleanup(func() { <-p.request(r.name, r.schema, nil) })
	return r
}

// start runs Ruby code and returns the channel on which its error, or nil, comes: for code that waits for a lock.
func (r *rails) start(code string) <-chan error {
	answer := r.process.request(r.name, r.schema, code)
	done := make(chan error, 1)
	go func() {
		if a := <-answer; a.Error != nil {
			done <- a.Error
		} else {
			done <- nil
		}
	}()
	return done
}

func (r *rails) value(code string, into any) error {
	a := <-r.process.request(r.name, r.schema, code)
	if a.Error != nil {
		return a.Error
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(a.Value, into)
}

// run runs Ruby code that must succeed.
func (r *rails) run(t *testing.T, code string) {
	t.Helper()
	if err := r.value(code, nil); err != nil {
		t.Fatalf("%s: %v", code, err)
	}
}

// number is the value of Ruby code, nil as -1.
func (r *rails) number(t *testing.T, code string) int64 {
	t.Helper()
	return value[int64](t, r, "("+code+") || -1")
}

func value[T any](t *testing.T, r *rails, code string) T {
	t.Helper()
	var v T
	if err := r.value(code, &v); err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return v
}

// stale runs Ruby code that must raise StaleObjectError, and wants the action it names.
func (r *rails) stale(t *testing.T, code, action string) {
	t.Helper()
	e := r.raises(t, code, "ActiveRecord::StaleObjectError")
	if e.Action != action {
		t.Errorf("%s: action %q, want %q", code, e.Action, action)
	}
}

func (r *rails) raises(t *testing.T, code, class string) *railsError {
	t.Helper()
	a := <-r.process.request(r.name, r.schema, code)
	if a.Error == nil || a.Error.Class != class {
		t.Fatalf("%s: %s, %v; want %s", code, a.Value, a.Error, class)
	}
	return a.Error
}

// atLeast reports whether ActiveRecord is of this version or a newer one.
func (r *rails) atLeast(t *testing.T, version string) bool {
	t.Helper()
	return value[bool](t, r, fmt.Sprintf(`ActiveRecord.version >= Gem::Version.new(%q)`, strings.TrimSpace(version)))
}
