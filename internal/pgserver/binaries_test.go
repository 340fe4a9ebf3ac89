package pgserver_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgserver"
)

// fake makes a directory of binaries that say they are of a version and do nothing.
func fake(t testing.TB, dir, version string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"postgres": "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + " (fake)'\n",
		"initdb":   "#!/bin/sh\necho made by fake " + version + "\nexit 1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The environment is set, so these run one by one.

func TestWhereBinariesComeFrom(t *testing.T) {
	dir := openDir(t, 0o755)
	for _, version := range []string{"9.6.24", "13.22", "14.2", "16.9", "16.10"} {
		fake(t, filepath.Join(dir, "all", version), version)
	}
	places := pgserver.Places(filepath.Join(dir, "nothing", "*"), filepath.Join(dir, "all", "*"))
	inPath := fake(t, filepath.Join(dir, "path"), "14.1")
	given := fake(t, filepath.Join(dir, "given"), "15.3")
	linked := filepath.Join(dir, "linked")
	if err := os.Mkdir(linked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(given, "postgres"), filepath.Join(linked, "postgres")); err != nil {
		t.Fatal(err)
	}
	system := os.Getenv("PATH")
	for _, c := range []struct {
		name, env, path string
		opts            []pgserver.Option
		want            string
	}{
		{"an option comes first", given, inPath, []pgserver.Option{pgserver.BinDir(filepath.Join(dir, "all", "14.2"))}, "fake 14.2"},
		{"then GORMLOCK_PG_BIN", given, inPath, nil, "fake 15.3"},
		{"a link is followed", linked, inPath, nil, "fake 15.3"},
		{"then PATH", "", inPath, nil, "fake 14.1"},
		{"then the newest", "", "", nil, "fake 16.10"},
		{"GORMLOCK_PG_BIN that holds nothing is an error", dir, inPath, nil, dir + " holds no PostgreSQL server"},
		{"GORMLOCK_PG_BIN that is too old is an error", filepath.Join(dir, "all", "13.22"), inPath, nil, "version 13.22, the oldest supported is 14"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GORMLOCK_PG_BIN", c.env)
			t.Setenv("PATH", c.path+":"+without(system, "postgres"))
			_, err := pgserver.Start(context.Background(), append(c.opts, places)...)
			mustFail(t, err, c.want)
			if c.env != "" && !strings.Contains(err.Error(), "fake") {
				mustFail(t, err, "GORMLOCK_PG_BIN")
			}
		})
	}
}

// without is a PATH without the directories that hold a program.
func without(path, program string) string {
	var kept []string
	for _, dir := range filepath.SplitList(path) {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			kept = append(kept, dir)
		}
	}
	return strings.Join(kept, ":")
}

func TestNothingToRun(t *testing.T) {
	t.Setenv("GORMLOCK_PG_BIN", "")
	t.Setenv("PATH", without(os.Getenv("PATH"), "postgres"))
	dir := openDir(t, 0o755)
	fake(t, filepath.Join(dir, "13"), "13.1")
	built, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(built))) // it would lie in the home of caches that follows, and be empty
	t.Setenv("XDG_CACHE_HOME", openDir(t, 0o700))
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err = pgserver.Start(context.Background(), pgserver.Places(filepath.Join(dir, "*")), pgserver.Repository(gone.URL))
	mustFail(t, err, "install postgresql", "GORMLOCK_PG_BIN", "GORMLOCK_TEST_DSN", "unable to connect", "version 13.1, the oldest supported is 14")
}

// Binaries that say they are PostgreSQL 18.3: a tar of bin/initdb, bin/pg_ctl, bin/postgres.
const archive = `/Td6WFoAAATm1rRGAgAhARwAAAAQz1jM4Cf/ALFdADEaShsFkZA3OlG9V3Gz1uEhGuzodTR9POemV5xBuI5pdqsf/+4UwN7nrRvp
QeMYsDTYmOVTf9fPJS9KUWQJ/E4JdeJJoBDJpk6KXNDWDA0lzrcieHHHw0oK++evY/12MBZBXsRvcr5yijITHuRUdRv2o8nICEKX
CS6kCkuwaZDJUsnFMyOmtt5cT5erSJ4wlkSZMcXk1rG7rNuNwBBPD4+6yhx5DL6MLYQBZ4gv90APAAAAAABT6UbabLdmdgABzQGA
UAAAjGim0rHEZ/sCAAAAAARZWg==`

func TestDownload(t *testing.T) {
	t.Parallel()
	txz, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(archive, "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	w, err := z.Create("postgres.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(txz); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	fetched := make(chan string, 10)
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetched <- r.URL.Path
		if !strings.HasSuffix(r.URL.Path, ".jar") {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(jar.Bytes())
	}))
	defer repository.Close()
	defer http.DefaultClient.CloseIdleConnections()

	cache := openDir(t, 0o755)
	dir := filepath.Join(cache, "postgresql")
	errs := make(chan error)
	for range 3 {
		go func() { errs <- pgserver.Fetch(t.Context(), cache, dir, repository.URL) }()
	}
	for range 3 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if len(fetched) != 2 { // the archive and its checksum
		t.Errorf("%d requests for three that need it at once, want 2", len(fetched))
	}
	_, err = pgserver.Start(context.Background(), pgserver.BinDir(filepath.Join(dir, "bin")))
	mustFail(t, err, "initdb")
	if left, _ := filepath.Glob(filepath.Join(cache, "fetch-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}

	t.Run("that fails leaves nothing and may be tried again", func(t *testing.T) {
		cache := openDir(t, 0o755)
		dir := filepath.Join(cache, "postgresql")
		broken := httptest.NewServer(http.NotFoundHandler())
		defer broken.Close()
		mustFail(t, pgserver.Fetch(t.Context(), cache, dir, broken.URL), "no version found")
		if _, err := os.Stat(dir); err == nil {
			t.Error("a directory without binaries is left")
		}
		if err := pgserver.Fetch(t.Context(), cache, dir, repository.URL); err != nil {
			t.Error(err)
		}
	})
}

// Somebody else downloads for longer than the caller waits.
func TestDownload_waitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	cache := openDir(t, 0o755)
	other, err := os.Create(filepath.Join(cache, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := pgserver.Fetch(ctx, cache, filepath.Join(cache, "postgresql"), ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestVersionOrder(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"16.10", "16.9"}, {"18.0", "17.10"}, {"18.0", "17beta1"}, {"14.1", "14rc1"}, {"15.13", "9.6.24"}} {
		if !pgserver.Newer(c[0], c[1]) || pgserver.Newer(c[1], c[0]) {
			t.Errorf("%s is not newer than %s", c[0], c[1])
		}
	}
}
