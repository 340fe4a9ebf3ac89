package bench

import (
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// BenchmarkServer says which servers the others ran on.
func BenchmarkServer(b *testing.B) {
	var version float64
	must(b, pgtest.SQLDB(b).QueryRow("SELECT current_setting('server_version_num')::int").Scan(&version))
	client := redisClient(b, false)
	for b.Loop() { // there is nothing to measure
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(version, "version-num")
	if client != nil {
		b.ReportMetric(redisVersion(b, client), "redis-version-num")
	}
}
