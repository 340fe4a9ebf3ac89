package pgserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// account is the user the server's processes run as.
type account struct {
	name       string
	credential *syscall.Credential // nil: the user we are
	home       string
}

// findAccount is the current user; for root it is postgres, else nobody.
func findAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{name: "uid " + strconv.Itoa(os.Geteuid())}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return account{}, fmt.Errorf("pgserver: user %s: %w", name, err)
		}
		return account{
			name:       name,
			credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
			home:       u.HomeDir,
		}, nil
	}
	return account{}, errors.New("pgserver: PostgreSQL does not run as root, and there is no user postgres or nobody to run it as: add one, or run as another user")
}

// command is a command of the account, in a session of its own so that the
// terminal's interrupt does not reach it, and in no environment that steers libpq.
func (a account) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	// Its children hold its output too and would be waited for.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Dir = dir
	cmd.Env = environment()
	cmd.SysProcAttr = a.attributes()
	return cmd
}

func (a account) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: a.credential}
}

const dirPrefix = "gormlock-pg-"

// memory is where Linux keeps files in memory. What a container gives it is often too little for a server.
const (
	memory = "/dev/shm"
	room   = 4 << 30
)

// parents are the places for a directory. A server that syncs nothing to a disk is as safe in memory, and starts several
// times as fast there.
func (a account) parents(synced bool) []string {
	disks := []string{os.TempDir(), "/tmp", "/var/tmp", a.home}
	if os.Getenv("TMPDIR") != "" || synced || free(memory) < room {
		return disks
	}
	return append([]string{memory}, disks...)
}

// free is how many bytes the account may still write below a directory.
func free(dir string) uint64 {
	var is syscall.Statfs_t
	if err := syscall.Statfs(dir, &is); err != nil {
		return 0
	}
	return is.Bavail * uint64(is.Bsize)
}

// makeDir makes a directory that belongs to the account, in the first place where
// the account may go and write: the temporary directory of the program is often
// closed to other users. A watchdog waits beside it.
func (a account) makeDir(parents ...string) (string, *watchdog, error) {
	var refused []string
	for _, parent := range parents {
		if parent == "" {
			continue
		}
		dir, w, err := a.makeDirIn(parent)
		if err == nil {
			return dir, w, nil
		}
		refused = append(refused, err.Error())
	}
	return "", nil, fmt.Errorf("pgserver: no place for a data directory that %s may use: %s: set TMPDIR to one", a.name, strings.Join(refused, "; "))
}

func (a account) makeDirIn(parent string) (string, *watchdog, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", nil, err
	}
	dir := filepath.Join(parent, dirPrefix+strings.ToLower(rand.Text()))
	w, err := watch(dir) // first, for we may die as soon as there is a directory
	if err != nil {
		return "", nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		w.dismiss()
		return "", nil, err
	}
	if err = a.own(dir); err == nil {
		var out []byte
		out, err = a.command(context.Background(), "/", "/bin/sh", "-c", `cd "$1" && : >probe && rm probe`, "sh", dir).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %s", parent, strings.TrimSpace(string(out)))
		}
	}
	if err != nil {
		w.release()
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, w, nil
}

// environment is ours without what would steer the server's programs elsewhere.
func environment() []string {
	env := []string{"LC_ALL=C"}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PG") && !strings.HasPrefix(kv, "LC_") && !strings.HasPrefix(kv, "LANG") {
			env = append(env, kv)
		}
	}
	return env
}
