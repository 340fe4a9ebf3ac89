package lookalikes_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/sessionlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// P33: PGlite is PostgreSQL itself, and all its clients are one session: a lock of one is granted to all.
func TestPGlite(t *testing.T) {
	t.Parallel()
	dsn := pgtest.PGlite(t)

	granted := 0
	for range 2 {
		var got bool
		if err := pgtest.Conn(t, pgtest.Through(dsn), pgtest.SimpleProtocol()).QueryRow(t.Context(), "SELECT pg_try_advisory_lock(42)").Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got {
			granted++
		}
	}
	if granted != 2 {
		t.Errorf("control: %d of 2 clients were granted one lock; where they exclude each other there is nothing to refuse", granted)
	}

	refused(t, dsn, "PGlite", true)

	p := at(t, dsn, "pglite")
	p.db.Exec("CREATE TABLE things (id int)")
	for _, d := range doors {
		if d.name == "advisory.SessionLocker" { // it has no options
			continue
		}
		if err := d.take(t.Context(), p); err != nil && !errors.Is(err, gormlock.ErrSnapshotTaken) {
			t.Errorf("%s, allowed: %v", d.name, err)
		}
	}
	if _, err := sessionlock.Open(t.Context(), dsn, sessionlock.AllowServer("PGlite"), sessionlock.AllowPooler()); !errors.Is(err, sessionlock.ErrNoExclusion) && !errors.Is(err, sessionlock.ErrPooler) {
		t.Errorf("sessionlock.Open, allowed: %v", err)
	}

	// Versions are rows, which need no lock.
	if err := p.db.AutoMigrate(&stand.Account{}); err != nil {
		t.Fatal(err)
	}
	first := stand.Account{ID: 1, Balance: 1}
	if err := p.db.Create(&first).Error; err != nil {
		t.Fatal(err)
	}
	var stale stand.Account
	if err := errors.Join(p.db.First(&stale, 1).Error, p.db.Model(&first).Update("balance", 2).Error); err != nil {
		t.Fatal(err)
	}
	if err := p.db.Transaction(func(tx *gorm.DB) error { return tx.Model(&stale).Update("balance", 3).Error }); !errors.Is(err, gormlock.ErrStale) {
		t.Errorf("a stale version: %v", err)
	}
}

// The doctor tries on two connections, and says what it found.
func TestPGlite_doctor(t *testing.T) {
	t.Parallel()
	dsn := pgtest.PGlite(t)
	program := t.TempDir() + "/gormlock"
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/gormlock/gormlock/cmd/gormlock").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program, "doctor", dsn).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{"warning server: this is PGlite, which only looks like PostgreSQL", "wrong   exclusion: "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
