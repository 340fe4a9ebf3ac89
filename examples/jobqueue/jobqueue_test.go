package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// TestMain makes the test binary a worker where the program starts itself as one.
func TestMain(m *testing.M) {
	if os.Getenv(workerName) == "" {
		pgtest.Main(m)
		return
	}
	var o options
	flags := flag.NewFlagSet("worker", flag.ExitOnError)
	flags.IntVar(&o.goroutines, "goroutines", 0, "")
	flags.IntVar(&o.batch, "batch", 0, "")
	flags.DurationVar(&o.lease, "lease", 0, "")
	_ = flags.Parse(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := program(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestJobqueue(t *testing.T) {
	t.Setenv("DATABASE_URL", pgtest.DSN(t))
	var out bytes.Buffer
	err := show(t.Context(), &out, options{jobs: 600, processes: 2, goroutines: 3, batch: 5, kills: 1, lease: 300 * time.Millisecond})
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"kill -9", "600 jobs in", "none was done twice", "w3"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output does not say %q:\n%s", want, &out)
		}
	}
}
