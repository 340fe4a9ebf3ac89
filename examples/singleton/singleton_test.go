package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// TestMain makes the test binary a node where the program starts itself as one.
func TestMain(m *testing.M) {
	if os.Getenv(nodeName) == "" {
		pgtest.Main(m)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := program(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestSingleton(t *testing.T) {
	t.Setenv("DATABASE_URL", pgtest.DSN(t))
	var out bytes.Buffer
	if err := show(t.Context(), &out, 2, 100*time.Millisecond); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"it stepped down", "it was killed", "its session ended", "lost: FATAL: terminating connection", "never two"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output does not say %q:\n%s", want, &out)
		}
	}
}
