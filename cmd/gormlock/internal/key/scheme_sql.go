package key

import (
	"fmt"
	"strings"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
)

// The expressions below compute the same as package compat, on PostgreSQL 14 and newer, in a database with the encoding UTF8.

// crc32SQL is the CRC-32 of bytes as a bigint from 0 to 4294967295.
func crc32SQL(bytes string) string {
	return "(WITH RECURSIVE b(t) AS (SELECT " + bytes + "), c(i, r) AS (SELECT 0, 4294967295 UNION ALL" +
		" SELECT i + 1, (x >> 1) # (3988292384 * (x & 1)) FROM (SELECT i, r # CASE WHEN i % 8 = 0 THEN get_byte(t, i / 8) ELSE 0 END AS x" +
		" FROM c, b WHERE i < 8 * length(t)) AS s) SELECT r # 4294967295 FROM c ORDER BY i DESC LIMIT 1)"
}

// hashCodeSQL is Java's String.hashCode of text as an int4.
func hashCodeSQL(text string) string {
	return "(WITH RECURSIVE c AS (SELECT n, ascii(ch) AS p FROM regexp_split_to_table(" + server.QuoteText(text) + ", '') WITH ORDINALITY AS s(ch, n))," +
		" u AS (SELECT row_number() OVER (ORDER BY n, k) AS i, v FROM c, LATERAL (VALUES" +
		" (0, CASE WHEN p < 65536 THEN p ELSE 55232 + (p >> 10) END), (1, CASE WHEN p >= 65536 THEN 56320 + (p & 1023) END)) AS w(k, v) WHERE v IS NOT NULL)," +
		" h(i, r) AS (SELECT 0::bigint, 0::bigint UNION ALL SELECT u.i, (31 * r + v) & 4294967295 FROM h JOIN u ON u.i = h.i + 1)" +
		" SELECT r::bit(32)::int FROM h ORDER BY i DESC LIMIT 1)"
}

// bigEndianSQL is the bigint of the first 16 hexadecimal digits.
func bigEndianSQL(hexadecimal string) string {
	return "('x' || substr(" + hexadecimal + ", 1, 16))::bit(64)::bigint"
}

// littleEndianSQL is the bigint of the first 8 bytes, the lowest first.
func littleEndianSQL(bytes string) string {
	return "(SELECT ('x' || string_agg(lpad(to_hex(get_byte(b, i)), 2, '0'), '' ORDER BY i DESC))::bit(64)::bigint FROM (SELECT " +
		bytes + ") AS s(b), generate_series(0, 7) AS i)"
}

// sha1SQL needs the extension pgcrypto.
func sha1SQL(text string) string { return "digest(" + server.QuoteBytes(text) + ", 'sha1')" }

func sha256SQL(text string) string { return "sha256(" + server.QuoteBytes(text) + ")" }

func hexSQL(bytes string) string { return "encode(" + bytes + ", 'hex')" }

func signedSQL(crc string) string { return crc + "::bit(32)::int::bigint" }

func golangMigrateSQL(database string, names []string) string {
	joined := strings.Join(append(append([]string{}, names...), database), "\x00")
	return fmt.Sprintf("%s * 1486364155 & 4294967295", crc32SQL(server.QuoteBytes(joined)))
}

// quoteName is an identifier.
func quoteName(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
