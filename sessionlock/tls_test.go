package sessionlock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// encrypt turns on encryption and returns an address that requires it.
func encrypt(t testing.TB, server *pgserver.Server) string {
	t.Helper()
	conn := pgtest.Conn(t, pgtest.Through(server.DSN("postgres")))
	var data string
	if err := conn.QueryRow(t.Context(), "SHOW data_directory").Scan(&data); err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"server.key": {Type: "EC PRIVATE KEY", Bytes: der},
		"server.crt": {Type: "CERTIFICATE", Bytes: certificate},
	} {
		file := filepath.Join(data, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if stat, ok := owner.Sys().(*syscall.Stat_t); ok {
			if err := os.Chown(file, int(stat.Uid), int(stat.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := conn.Exec(t.Context(), "ALTER SYSTEM SET ssl = on"); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(server.DSN("postgres"), "sslmode=disable", "sslmode=require", 1)
}

// If a caller leaves while it reads, an encrypted connection stays as usable as a plain one.
func TestTLS_cancelledCallersLeaveTheConnectionAlone(t *testing.T) {
	t.Parallel()
	dsn := encrypt(t, pgtest.Fresh(t))
	m, rival := openAt(t, dsn), openAt(t, dsn)
	k, steady := lockkey.Of("contended"), acquire(t, m, lockkey.Of("steady"))
	var wg sync.WaitGroup
	for i := range 300 {
		who := []*sessionlock.Manager{m, rival}[i%2]
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*10*time.Microsecond)
			defer cancel()
			l, err := who.Acquire(ctx, k)
			if err == nil {
				release(t, l)
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		if i%10 == 0 {
			wg.Wait()
		}
	}
	wg.Wait()
	if err := steady.Err(); err != nil {
		t.Error(err)
	}
	release(t, steady)
	pgtest.Observe(t, dsn).AssertFree(t, k)
}
