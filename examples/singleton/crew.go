package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// crew are the nodes.
type crew struct {
	dsn, task string
	out       io.Writer
	began     time.Time
	nodes     []*process
	events    chan event
	leader    *process // as far as the nodes have said
}

type process struct {
	name    string
	cmd     *exec.Cmd
	backend int
	over    chan struct{} // closed when it has ended
}

// event is a line that a node wrote.
type event struct {
	from *process
	line string
}

func (c *crew) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.out, "%6.2f s  %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}

// start starts one more node: this program again, told by its environment what it is.
func (c *crew) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := &process{name: fmt.Sprintf("node %d", len(c.nodes)+1), over: make(chan struct{})}
	p.cmd = exec.Command(self) //nolint:noctx // ended by signals
	p.cmd.Env = append(os.Environ(), nodeName+"="+p.name, nodeDSN+"="+c.dsn, nodeTask+"="+c.task)
	p.cmd.Stderr = os.Stderr
	lines, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	c.nodes = append(c.nodes, p)
	go func() {
		defer close(p.over)
		for scanner := bufio.NewScanner(lines); scanner.Scan(); {
			c.events <- event{p, scanner.Text()}
		}
		_ = p.cmd.Wait() // killed or asked to end
		c.events <- event{p, "is gone"}
	}()
	return nil
}

// errTwoLeaders would be the end of the promise.
var errTwoLeaders = errors.New("two nodes lead")

// next waits for the next leader. A leader may learn that it lost the lock a moment after the next one has it: what it
// says in that moment is not in order.
func (c *crew) next(ctx context.Context, why string) (*process, error) {
	before, asked := c.leader, time.Now()
	timeout := time.NewTimer(30 * time.Second)
	defer timeout.Stop()
	stopped, next := before == nil, (*process)(nil)
	for !stopped || next == nil {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout.C:
			return nil, fmt.Errorf("nobody leads 30 s after %s", why)
		case e := <-c.events:
			var backend int
			switch {
			case strings.HasPrefix(e.line, "leads"):
				if next != nil {
					return nil, fmt.Errorf("%w: %s and %s", errTwoLeaders, next.name, e.from.name)
				}
				_, _ = fmt.Sscanf(e.line, "leads %d", &backend)
				next, e.from.backend = e.from, backend
				c.say("%s leads, %s after %s", e.from.name, time.Since(asked).Round(time.Millisecond), why)
			case e.from == before:
				stopped = true
				c.say("%s %s", e.from.name, e.line)
			}
		}
	}
	c.leader = next
	return next, nil
}

// end asks all nodes to end and waits for them.
func (c *crew) end() {
	for _, p := range c.nodes {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	for _, p := range c.nodes {
		for over := false; !over; {
			select {
			case <-p.over:
				over = true
			case <-c.events:
			}
		}
	}
}
