package sessionlock_test

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// L3, L4: on a silent network the holder knows of the loss before the server frees the lock. Both times are measured with one clock.
//
// On loopback the kernel answers for a stopped process. So a relay loses what the server's kernel sends, which most kernels allow everybody to do.
func TestSilent_holderKnowsBeforeTheServerFreesTheLock(t *testing.T) {
	t.Parallel()
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("busy=%t", busy), func(t *testing.T) {
			t.Parallel()
			r, config := newRelay(t, pgtest.DSN(t))
			m, err := sessionlock.OpenConfig(t.Context(), config, sessionlock.Heartbeat(time.Second))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := m.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			k, other := pgtest.Key(t), pgtest.Key(t, "busy")
			l := acquire(t, m, k)
			stop := func() {}
			if busy {
				stop = keepBusy(t, m, other)
			}
			freed := waitFor(t, pgtest.DSN(t), k)
			pgtest.WaitBlocked(t, k, 1)
			silent := time.Now()
			r.silence(t, 5*time.Second) // 5h
			pgtest.Await(t, "Lost", l.Lost())
			lost := time.Now()
			assertInTime(t, silent, lost, <-freed)
			stop()
			release(t, acquire(t, m, k)) // on a new connection
		})
	}
}

// keepBusy keeps something in flight until stop.
func keepBusy(t testing.TB, m *sessionlock.Manager, k lockkey.Key) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if l, err := m.Acquire(ctx, k); err == nil {
				_ = l.Release(context.WithoutCancel(ctx)) // it may be lost
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// waitFor makes a connection of another program wait for k, and reports when it got k.
func waitFor(t testing.TB, dsn string, k lockkey.Key) <-chan time.Time {
	t.Helper()
	conn := pgtest.Conn(t, pgtest.Through(dsn))
	id, _ := k.Int64()
	freed := make(chan time.Time, 1)
	go func() {
		if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_lock($1)", id); err != nil {
			t.Error(err)
		}
		now := time.Now()
		defer func() { freed <- now }()
		if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_unlock($1)", id); err != nil {
			t.Error(err)
		}
	}()
	return freed
}

// assertInTime checks the times for a heartbeat of a second: the loss is known after 3 seconds, and the lock is free after 5. The server's clocks
// may start up to a second earlier.
func assertInTime(t testing.TB, silent, lost, free time.Time) {
	t.Helper()
	t.Logf("the holder knew after %s, the server freed the lock after %s", lost.Sub(silent), free.Sub(silent))
	if free.Sub(lost) < time.Second {
		t.Errorf("the holder knew only %s before the lock was free", free.Sub(lost))
	}
	if lost.Sub(silent) > 4*time.Second {
		t.Errorf("the holder knew after %s only", lost.Sub(silent))
	}
}

// network is three network namespaces in a row: this one with the server, a router and a client. If the router forwards nothing, the network is
// silent for both ends.
type network struct {
	t              testing.TB
	router, client string
	near, far      string // the first three numbers of the addresses on each side of the router
}

func newNetwork(t testing.TB) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root; TestSilent_holderKnowsBeforeTheServerFreesTheLock measures the same through a relay")
	}
	pid := os.Getpid()
	n := strconv.Itoa(pid)
	net := &network{t: t, router: "gormlock-r" + n, client: "gormlock-c" + n}
	net.near = fmt.Sprintf("10.%d.%d", 200+pid%50, pid/50%120*2) // so that two runs on one machine do not conflict
	net.far = fmt.Sprintf("10.%d.%d", 200+pid%50, pid/50%120*2+1)
	if out, err := exec.Command("ip", "netns", "add", net.router).CombinedOutput(); err != nil {
		t.Skipf("no network namespace can be made here: %v: %s; TestSilent_holderKnowsBeforeTheServerFreesTheLock measures the same through a relay", err, out)
	}
	t.Cleanup(func() { net.run("ip", "netns", "del", net.router) })
	net.run("ip", "netns", "add", net.client)
	t.Cleanup(func() { net.run("ip", "netns", "del", net.client) })

	net.run("ip", "link", "add", "gl"+n, "type", "veth", "peer", "name", "r0", "netns", net.router)
	// Without this it would go with its namespace a while later, and so would its name.
	t.Cleanup(func() { net.run("ip", "link", "del", "gl"+n) })
	net.run("ip", "addr", "add", net.near+".1/24", "dev", "gl"+n)
	net.run("ip", "link", "set", "gl"+n, "up")
	net.in(net.router, "ip", "addr", "add", net.near+".2/24", "dev", "r0")
	net.in(net.router, "ip", "link", "set", "r0", "up")
	net.in(net.router, "ip", "link", "add", "r1", "type", "veth", "peer", "name", "c0", "netns", net.client)
	net.in(net.router, "ip", "addr", "add", net.far+".2/24", "dev", "r1")
	net.in(net.router, "ip", "link", "set", "r1", "up")
	net.in(net.client, "ip", "addr", "add", net.far+".1/24", "dev", "c0")
	net.in(net.client, "ip", "link", "set", "c0", "up")
	net.in(net.client, "ip", "link", "set", "lo", "up")
	net.in(net.client, "ip", "route", "add", "default", "via", net.far+".2")
	net.run("ip", "route", "add", net.far+".0/24", "via", net.near+".2")
	net.forward(true)
	return net
}

func (n *network) run(name string, args ...string) {
	n.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		n.t.Errorf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

func (n *network) in(namespace string, args ...string) {
	n.t.Helper()
	n.run("ip", append([]string{"netns", "exec", namespace}, args...)...)
}

// forward opens and closes the way between client and server. Neither is told.
func (n *network) forward(open bool) {
	n.t.Helper()
	value := map[bool]string{true: "1", false: "0"}[open]
	n.in(n.router, "sh", "-c", "echo "+value+" > /proc/sys/net/ipv4/ip_forward")
}

// admit makes a server listen on the network.
func (n *network) admit(server *pgserver.Server) string {
	n.t.Helper()
	conn := pgtest.Conn(n.t, pgtest.Through(server.DSN("postgres")))
	for _, sql := range []string{
		"ALTER SYSTEM SET listen_addresses = '*'",
		`DO $$ BEGIN EXECUTE format('COPY (SELECT * FROM regexp_split_to_table(%L, E''\n'') UNION ALL SELECT ''host '' || repeat(''all '', 2) || ''10.0.0.0/8 trust'') TO %L',
			pg_read_file(current_setting('hba_file')), current_setting('hba_file')); END $$`,
	} {
		if _, err := conn.Exec(n.t.Context(), sql); err != nil {
			n.t.Fatal(err)
		}
	}
	if err := server.Restart(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
	u, err := url.Parse(server.DSN("postgres"))
	if err != nil {
		n.t.Fatal(err)
	}
	u.Host = n.near + ".1:" + u.Port()
	return u.String()
}

const (
	holderDSN  = "GORMLOCK_TEST_HOLDER_DSN"
	holderBusy = "GORMLOCK_TEST_HOLDER_BUSY"
)

// hold is the main function of the process in the client's namespace. It reports when it holds the lock and when it knows that it does not.
func hold() error {
	ctx := context.Background()
	m, err := sessionlock.Open(ctx, os.Getenv(holderDSN), sessionlock.Heartbeat(time.Second))
	if err != nil {
		return err
	}
	l, err := m.Acquire(ctx, lockkey.Of("silent"))
	if err != nil {
		return err
	}
	if _, err := fmt.Println("held"); err != nil {
		return err
	}
	if os.Getenv(holderBusy) != "" {
		go func() { // something is always in flight
			for l.Err() == nil {
				if other, err := m.Acquire(ctx, lockkey.Of("busy")); err == nil {
					_ = other.Release(ctx) // it may be lost
				}
			}
		}()
	}
	<-l.Lost()
	_, err = fmt.Println("lost", time.Now().UnixNano())
	return err // and abandons the manager, which dials until the network is back
}

// The same test between two machines, as nearly as one machine can be two.
func TestSilent_betweenNamespaces(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	server := pgtest.Fresh(t)
	dsn := n.admit(server)
	for _, busy := range []string{"", "1"} {
		n.forward(true)
		holder := exec.CommandContext(t.Context(), "ip", "netns", "exec", n.client, os.Args[0])
		holder.Env = append(os.Environ(), holderDSN+"="+dsn, holderBusy+"="+busy)
		out, err := holder.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := holder.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lineAfter(t, lines, "held")
		freed := waitFor(t, server.DSN("postgres"), lockkey.Of("silent"))
		pgtest.Observe(t, server.DSN("postgres")).WaitBlocked(t, lockkey.Of("silent"), 1)
		silent := time.Now()
		n.forward(false)
		nanoseconds, err := strconv.ParseInt(lineAfter(t, lines, "lost "), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		assertInTime(t, silent, time.Unix(0, nanoseconds), <-freed)
		if err := holder.Wait(); err != nil {
			t.Error(err)
		}
		pgtest.Observe(t, server.DSN("postgres")).AssertFree(t, lockkey.Of("silent"))
	}
}

// lineAfter reads up to the line that begins with prefix and returns the rest of that line.
func lineAfter(t testing.TB, lines *bufio.Scanner, prefix string) string {
	t.Helper()
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), prefix); ok {
			return rest
		}
	}
	t.Fatalf("the holder ended without saying %q", prefix)
	return ""
}
