package lookalike_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/lookalike"
)

// versions are what version() says, by the name of the server; "" is PostgreSQL.
var versions = map[string][]string{
	"": {
		"PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit",
		"PostgreSQL 18beta1 on aarch64-apple-darwin24.4.0, compiled by Apple clang version 17.0.0 (clang-1700.0.13.3), 64-bit",
		"PostgreSQL 16.1, compiled by Visual C++ build 1937, 64-bit",
		"PostgreSQL 17.0 on x86_64-windows, compiled by msvc-19.41.34120, 64-bit",
		"PostgreSQL 14.4 on x86_64-pc-linux-gnu, compiled by Debian clang version 12.0.1, 64-bit",                                    // AlloyDB, Cloud SQL
		"PostgreSQL 17.5 (6bc9ef8) on aarch64-unknown-linux-gnu, compiled by gcc (Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit",          // Neon
		"PostgreSQL 15.1 on aarch64-unknown-linux-gnu, compiled by gcc (Ubuntu 10.3.0-1ubuntu1~20.04) 10.3.0, 64-bit",                // Supabase
		"PostgreSQL 15.4 on x86_64-pc-linux-gnu, compiled by x86_64-pc-linux-gnu-gcc (GCC) 9.5.0, 64-bit",                            // Aurora
		"PostgreSQL 15.2 (EnterpriseDB Advanced Server 15.2.0) on x86_64-pc-linux-gnu, compiled by gcc (GCC) 8.5.0 20210514, 64-bit", // EDB
		"PostgreSQL 15.4 - Percona Distribution on x86_64-pc-linux-gnu, compiled by gcc (GCC) 8.5.0, 64-bit",
		"PostgreSQL 14.9 on i686-pc-linux-gnu, compiled by gcc (Debian 10.2.1-6) 10.2.1, 32-bit",
	},
	"CockroachDB": {"CockroachDB CCL v25.2.0 (x86_64-pc-linux-gnu, built 2025/05/09 18:30:00, go1.23.7)"},
	"YugabyteDB":  {"PostgreSQL 15.2-YB-2.25.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 17.0.6, 64-bit"},
	"Redshift":    {"PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2 20041017 (Red Hat 3.4.2-6.fc3), Redshift 1.0.12103"},
	"Materialize": {"PostgreSQL 9.5 on x86_64-unknown-linux-gnu (Materialize 0.130.0)", "PostgreSQL 9.5 on x86_64-unknown-linux-gnu (materialized 0.26.0)"},
	"PGlite": {
		"PostgreSQL 18.6 (PGlite 0.5.14) on wasm32-unknown-emscripten, compiled by emcc (Emscripten gcc/clang-like replacement + linker emulating GNU ld) 6.0.5 (1db5), 32-bit",
		"PostgreSQL 16.4 on x86_64-pc-linux-gnu, compiled by emcc (Emscripten gcc/clang-like replacement + linker emulating GNU ld) 3.1.72, 32-bit",
	},
	"QuestDB":    {"PostgreSQL 12.3, compiled by Visual C++ build 1914, 64-bit, QuestDB"},
	"CrateDB":    {"CrateDB 5.10.4 (built 4cdd5c5/2025-04-08T09:02:43Z, Linux 6.8.0 amd64, OpenJDK 64-Bit Server VM 24+36)"},
	"RisingWave": {"PostgreSQL 13.14.0-RisingWave-2.3.0 (4e1b5e5)"},
	"Greenplum":  {"PostgreSQL 12.12 (Greenplum Database 7.1.0 build commit:1) on x86_64-pc-linux-gnu, compiled by gcc (GCC) 8.5.0, 64-bit compiled on Jan 19 2024"},
	"PostgreSQL": {"PostgreSQL 16"}, // Aurora DSQL
	"openGauss":  {"openGauss 6.0.0 on x86_64-unknown-linux-gnu, compiled by g++ (GCC) 10.3.0, 64-bit"},
	"Redpanda":   {"Redpanda SQL 1.2.0 (abc1234)"},
}

func TestNameOf(t *testing.T) {
	t.Parallel()
	for name, texts := range versions {
		for _, text := range texts {
			if got := lookalike.NameOf(text); got != name {
				t.Errorf("%s\nis %q, want %q", text, got, name)
			}
		}
	}
}

// What a server quotes in an error is read in its own language.
func TestRead(t *testing.T) {
	t.Parallel()
	const version = "CockroachDB CCL v25.2.0 (x86_64-pc-linux-gnu, built 2025/05/09 18:30:00, go1.23.7)"
	for _, message := range []string{
		`ERROR: invalid input syntax for type integer: "gormlock server: ` + version + `" (SQLSTATE 22P02)`,
		`FEHLER: ungültige Eingabesyntax für Typ integer: »gormlock server: ` + version + `« (SQLSTATE 22P02)`,
		`ERROR: could not parse "gormlock server: ` + version + `" as type int: strconv.ParseInt: parsing "gormlock server: x": invalid syntax`,
		"Cannot cast `'gormlock server: " + version + "'` of type `text` to type `integer`",
		`inconvertible value: gormlock server: ` + version + ` (SQLSTATE 00000)`,
	} {
		if got := lookalike.Read(message); got != version {
			t.Errorf("%s\nread %q", message, got)
		}
	}
	for _, message := range []string{"", `invalid input syntax for type integer: "gormlock refused: serializable"`} {
		if got := lookalike.Read(message); got != "" {
			t.Errorf("%s\nread %q", message, got)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name := range versions {
		if err := lookalike.Check(name); (err == nil) != (name != "") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"x'); DROP TABLE t", "it's", `a"b`, "a b", strings.Repeat("x", 65)} {
		if err := lookalike.Check(name); !errors.Is(err, lookalike.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if !lookalike.Allows([]string{"pglite"}, "PGlite") || lookalike.Allows([]string{"PGlite"}, "QuestDB") || lookalike.Allows(nil, "QuestDB") {
		t.Error("names")
	}
}
