package bench

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/gormlock/gormlock/lockkey"
)

// redisClient runs a Redis for the benchmark. It returns nil if Redis is left out.
func redisClient(b *testing.B, durable bool) *redis.Client {
	b.Helper()
	if os.Getenv("GORMLOCK_WITHOUT_REDIS") != "" {
		return nil
	}
	program, err := exec.LookPath("redis-server")
	if err != nil {
		b.Fatalf("%v: scripts/require-redis installs it, GORMLOCK_WITHOUT_REDIS=1 leaves it out", err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	args := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", b.TempDir(), "--save", ""}
	if durable {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	server := exec.Command(program, args...)
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	client := redis.NewClient(&redis.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), PoolSize: leaseConns, PoolTimeout: time.Minute})
	b.Cleanup(func() { _ = client.Close() })
	for limit := time.Now().Add(10 * time.Second); client.Ping(b.Context()).Err() != nil; {
		if time.Now().After(limit) {
			b.Fatal("redis does not answer")
		}
	}
	return client
}

// redisVersion is the server's version in PostgreSQL's form: 70015 for 7.0.15.
func redisVersion(b *testing.B, client *redis.Client) float64 {
	b.Helper()
	info, err := client.Info(b.Context(), "server").Result()
	must(b, err)
	_, info, _ = strings.Cut(info, "redis_version:")
	var major, minor, patch int
	_, err = fmt.Sscanf(info, "%d.%d.%d", &major, &minor, &patch)
	must(b, err)
	return float64(major*10_000 + minor*100 + patch)
}

func redislocked(client *redis.Client) once {
	locker := redislock.New(client)
	return func(ctx context.Context, key lockkey.Key) error {
		l, err := locker.Obtain(ctx, key.String(), 30*time.Second, nil)
		if err != nil {
			return err
		}
		return l.Release(ctx)
	}
}
