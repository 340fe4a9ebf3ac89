package pgtest

import (
	"net"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/wiretap"
)

// Tap starts a proxy in front of the server of dsn, and returns the proxy with its connection string. It is closed at the end of the test.
func Tap(t testing.TB, dsn string) (*wiretap.Proxy, string) {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := wiretap.Listen(net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	through, err := proxy.DSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return proxy, through
}
