package pgtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PGlite starts a PGlite, which is PostgreSQL in WebAssembly with one session for all its clients, and returns its connection string. It is stopped
// at the end of the test. The test is only skipped if GORMLOCK_WITHOUT_PGLITE says that there is none.
func PGlite(t testing.TB) (dsn string) {
	t.Helper()
	program, err := npmPGlite(t)
	if err != nil {
		if os.Getenv("GORMLOCK_WITHOUT_PGLITE") != "" {
			t.Skip("left out by GORMLOCK_WITHOUT_PGLITE: there is no PGlite here")
		}
		t.Fatalf("%v: GORMLOCK_WITHOUT_PGLITE=1 leaves this test out", err)
	}
	port := freePort(t)
	log := &bytes.Buffer{}
	cmd := osexec.Command("node", program, "--port", port, "--max-connections", "20")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	dsn = "postgres://postgres@127.0.0.1:" + port + "/postgres?sslmode=disable"
	if err := answers(t, dsn, 2*bound); err != nil {
		t.Fatalf("PGlite does not answer: %v", err)
	}
	return dsn
}

// answers waits until a server that was started accepts connections.
func answers(t testing.TB, dsn string, within time.Duration) error {
	t.Helper()
	background := context.WithoutCancel(t.Context())
	var last error
	err := poll(background, within, func() (bool, error) {
		ctx, cancel := context.WithTimeout(background, 5*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, dsn)
		if last = err; err != nil {
			return false, nil // it is tried again
		}
		return true, conn.Close(ctx)
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// npmPGlite returns the path of the program, which is downloaded on first use.
func npmPGlite(t testing.TB) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		script := filepath.Join(dir, "scripts", "npm-pglite")
		if _, err := os.Stat(script); err == nil {
			cmd := osexec.CommandContext(t.Context(), script)
			said := &strings.Builder{}
			cmd.Stderr = said
			out, err := cmd.Output()
			if err != nil {
				return "", errors.New(strings.TrimSpace(said.String() + " " + err.Error()))
			}
			return strings.TrimSpace(string(out)), nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("scripts/npm-pglite is in no directory above")
		}
	}
}
