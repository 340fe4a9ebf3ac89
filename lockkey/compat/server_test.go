package compat_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
)

// texts are random strings of every length across four blocks of the hash.
func texts(seed uint64) []string {
	random := rand.New(rand.NewPCG(seed, 7))
	letters := []rune("abcxyz019 _-:/'\"\\\t\n\x01\x7féß語ロ😀🚀𝔘")
	var all []string
	for length := range 50 {
		for range 40 {
			var text strings.Builder
			for text.Len() < length {
				text.WriteRune(letters[random.IntN(len(letters))])
			}
			all = append(all, text.String())
		}
	}
	return append(all, strings.Repeat("語", 5000), strings.Repeat("x", 12*1000))
}

// onServer runs a query with the texts as $1 and the other args, which gives one
// row of numbers for each text, in order.
func onServer[T any](t *testing.T, conn *pgx.Conn, texts []string, sql string, args ...any) []T {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, append([]any{texts}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	if len(numbers) != len(texts) {
		t.Fatalf("%d rows for %d texts", len(numbers), len(texts))
	}
	return numbers
}

// K7
func TestHashText_isTheServers(t *testing.T) {
	t.Parallel()
	conn, all := pgtest.Conn(t), texts(1)
	const sql = `SELECT hashtext(t) FROM unnest($1::text[]) WITH ORDINALITY AS u(t, n) ORDER BY n`
	for i, want := range onServer[int32](t, conn, all, sql) {
		wantInt64(t, compat.HashText(all[i]), int64(want))
		wantPair(t, compat.HashTextPair(all[i], "a"), want, 1075015857)
	}
}

// K7
func TestHashTextExtended_isTheServers(t *testing.T) {
	t.Parallel()
	conn, all := pgtest.Conn(t), texts(2)
	const sql = `SELECT hashtextextended(t, $2) FROM unnest($1::text[]) WITH ORDINALITY AS u(t, n) ORDER BY n`
	for _, seed := range []int64{0, 1, -1, 1 << 32, -1 << 63, 0x0123456789abcdef} {
		for i, want := range onServer[int64](t, conn, all, sql, seed) {
			wantInt64(t, compat.HashTextExtended(all[i], seed), want)
		}
	}
}

// GoodJob hashes on the server.
func TestGoodJob_isTheServers(t *testing.T) {
	t.Parallel()
	conn, all := pgtest.Conn(t), texts(3)
	for expression, scheme := range map[string]func(string) lockkey.Key{
		"('x' || substr(md5(t), 1, 16))::bit(64)::bigint":                                       compat.GoodJob,
		"('x' || substr(encode(sha256(convert_to(t, 'UTF8')), 'hex'), 1, 16))::bit(64)::bigint": compat.GoodJobSHA256,
		"hashtext(t)::bigint": compat.HashText,
	} {
		sql := `SELECT ` + expression + ` FROM unnest($1::text[]) WITH ORDINALITY AS u(t, n) ORDER BY n`
		for i, want := range onServer[int64](t, conn, all, sql) {
			wantInt64(t, scheme(all[i]), want)
		}
	}
}

// The migrators' keys are made of current_database().
func TestDatabaseSchemes_acceptWhatTheServerNames(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	var database string
	var cut int
	if err := conn.QueryRow(t.Context(), `SELECT current_database(), length(repeat('x', 64)::name::text)`).Scan(&database, &cut); err != nil {
		t.Fatal(err)
	}
	if cut != 63 {
		t.Errorf("the server keeps %d bytes of a name of 64", cut)
	}
	longest := strings.Repeat("x", cut)
	for _, k := range []lockkey.Key{
		compat.RailsMigrator(database), compat.Sqlx(database), compat.GolangMigrate(database, "public", "schema_migrations"),
		compat.RailsMigrator(longest), compat.Sqlx(longest), compat.GolangMigrate(longest),
	} {
		if err := k.Err(); err != nil {
			t.Error(err)
		}
	}
}
