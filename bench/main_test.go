package bench

import (
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// BenchmarkServer says which server the others ran on.
func BenchmarkServer(b *testing.B) {
	var version float64
	must(b, pgtest.SQLDB(b).QueryRow("SELECT current_setting('server_version_num')::int").Scan(&version))
	for b.Loop() { //nolint:revive // there is nothing to measure
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(version, "version-num")
}
