package mariaserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// server is a running MariaDB.
type server struct {
	address string
	dir     string
	keeper  *exec.Cmd
	pipe    *os.File // when it is closed, the server ends
}

var (
	mu      sync.Mutex
	running *server
	failed  error
)

// errNone says that there is no MariaDB here.
var errNone = errors.New("there is no mariadbd here: scripts/require-mariadb installs it, GORMLOCK_WITHOUT_MARIADB=1 leaves these tests out")

// started is the server of this test binary. The first test that needs it starts it.
func started() (*server, error) {
	mu.Lock()
	defer mu.Unlock()
	if running == nil && failed == nil {
		running, failed = start()
	}
	return running, failed
}

// Stop ends the server, if any test has started it.
func Stop() {
	mu.Lock()
	defer mu.Unlock()
	if running != nil {
		_ = running.pipe.Close()
		_ = running.keeper.Wait()
		running, failed = nil, errors.New("the server is stopped")
	}
}

// keep installs a server into the directory, runs it until standard input ends, and then removes everything.
const keep = `
trap '' HUP INT TERM
dir=$1 port=$2 install=$3 server=$4
export TMPDIR="$dir" # in one directory, temporary tables of servers that are installed at the same time have the same names
"$install" --no-defaults --datadir="$dir/data" --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve >"$dir/log" 2>&1 </dev/null &&
"$server" --no-defaults --datadir="$dir/data" --socket="$dir/socket" --pid-file="$dir/pid" --bind-address=127.0.0.1 --port="$port" \
	--skip-name-resolve --skip-log-bin --innodb-buffer-pool-size=32M --innodb-log-file-size=16M --innodb-flush-log-at-trx-commit=0 \
	--max-connections=300 --default-time-zone=+00:00 --innodb-print-all-deadlocks=0 --log-warnings=1 >>"$dir/log" 2>&1 </dev/null &
pid=$!
read -r _
kill -KILL "$(cat "$dir/pid" 2>/dev/null || echo "$pid")" 2>/dev/null
kill -KILL "$pid" 2>/dev/null
wait
i=0
while [ $i -lt 100 ] && ! { rm -rf "$dir" && [ ! -e "$dir" ]; }; do i=$((i+1)); sleep 0.1; done
`

func start() (*server, error) {
	program, err := find("mariadbd")
	if err != nil {
		return nil, errNone
	}
	install, err := find("mariadb-install-db")
	if err != nil {
		return nil, errNone
	}
	attributes := &syscall.SysProcAttr{Setsid: true}
	uid := -1
	if os.Geteuid() == 0 {
		if attributes.Credential, err = other(); err != nil {
			return nil, err
		}
		uid = int(attributes.Credential.Uid)
	}
	dir, err := os.MkdirTemp("/tmp", "gormlock-mariadb-") // another user must be able to reach it, and the path of a socket must be short
	if err != nil {
		return nil, err
	}
	if err := os.Chown(dir, uid, -1); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	free, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := &server{address: free.Addr().String(), dir: dir}
	_ = free.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	defer func() { _ = read.Close() }()
	_, port, _ := net.SplitHostPort(s.address)
	s.pipe, s.keeper = write, exec.CommandContext(context.Background(), "/bin/sh", "-c", keep, "sh", dir, port, install, program)
	s.keeper.Dir, s.keeper.Stdin, s.keeper.SysProcAttr = "/", read, attributes
	if err := s.keeper.Start(); err != nil {
		return nil, errors.Join(err, write.Close(), os.RemoveAll(dir))
	}
	return s, s.await()
}

// await waits until the server answers.
func (s *server) await() error {
	db, err := sql.Open("mysql", s.dsn(""))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		if err = db.PingContext(context.Background()); err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			_ = s.pipe.Close()
			_ = s.keeper.Wait()
			return fmt.Errorf("mariadbd does not answer: %w\n%s", err, tail(string(log)))
		}
	}
}

func tail(log string) string { return strings.TrimSpace(log[max(0, len(log)-3000):]) }

// dsn is the connection string of a database.
func (s *server) dsn(database string) string {
	return "root@tcp(" + s.address + ")/" + database + "?parseTime=true&interpolateParams=false"
}

// find looks for a program in the directories where packages install servers.
func find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + name)
}

// other is the user under which root runs the server.
func other() (*syscall.Credential, error) {
	for _, name := range []string{"mysql", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
	}
	return nil, errors.New("mariadbd does not run as root, and there is no user mysql or nobody to run it as")
}
