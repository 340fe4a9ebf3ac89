package key

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
)

// scheme is a program's way to make lock ids from names.
type scheme struct {
	names   []string // the first one is shown
	args    []string // its arguments; [optional], and … for any number
	whose   string
	key     func(args []string) (lockkey.Key, error)
	compute func(k lockkey.Key, args []string) string // the columns of a SELECT; "" if SQL cannot compute it
	needs   string                                    // the extension that compute needs
	row     func(args []string) (string, error)       // instead of key if the lock is a row
}

// gormlockScheme is the default.
const gormlockScheme = "gormlock"

func schemes() []scheme {
	var all []scheme
	for _, group := range [][]scheme{ownSchemes, rubySchemes, migratorSchemes, otherSchemes, serverSchemes} {
		all = append(all, group...)
	}
	return all
}

// SchemeNames are all values of --scheme.
func SchemeNames() []string {
	var names []string
	for _, s := range schemes() {
		names = append(names, s.names...)
	}
	return names
}

func schemeNamed(name string) (scheme, error) {
	var known []string
	for _, s := range schemes() {
		for _, n := range s.names {
			if n == name {
				return s, nil
			}
			known = append(known, n)
		}
	}
	return scheme{}, fmt.Errorf("there is no scheme %q%s: gormlock key --schemes lists them", name, cli.DidYouMean(name, known))
}

// form is the arguments as the help shows them.
func (s scheme) form() string { return strings.Join(s.args, " ") }

// count returns an error if the number of arguments is wrong.
func (s scheme) count(args []string) error {
	least, most := 0, len(s.args)
	for _, a := range s.args {
		if !strings.HasPrefix(a, "[") {
			least++
		}
		if strings.Contains(a, "…") {
			most = len(args)
		}
	}
	if len(args) < least || len(args) > most {
		return fmt.Errorf("the scheme %s takes %s, not %s", s.names[0], s.form(), terminal.Count(len(args), "argument"))
	}
	return nil
}

// second is the second argument, or otherwise if it was left out.
func second(args []string, otherwise string) string {
	if len(args) > 1 {
		return args[1]
	}
	return otherwise
}

func integer(text string, bits int) (int64, error) {
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%q is not an integer of %d bits", text, bits)
	}
	return n, nil
}

// fixed is compute for a scheme whose argument is the id itself.
func fixed(k lockkey.Key, _ []string) string { return ids(k) }

// ids are the arguments of pg_advisory_lock. The least number of a type is in quotes, because PostgreSQL reads a minus and then a number, and that
// number is one too large.
func ids(k lockkey.Key) string {
	if hi, lo, ok := k.Pair(); ok {
		return int4(hi) + ", " + int4(lo)
	}
	id, _ := k.Int64()
	if id == math.MinInt64 {
		return fmt.Sprintf("'%d'::bigint", id)
	}
	return strconv.FormatInt(id, 10)
}

func int4(n int32) string {
	if n == math.MinInt32 {
		return fmt.Sprintf("'%d'::int", n)
	}
	return strconv.Itoa(int(n))
}

// anys returns the parts of a key.
func anys(args []string) []any {
	parts := make([]any, len(args))
	for i, a := range args {
		parts[i] = a
	}
	return parts
}

var ownSchemes = []scheme{
	{
		names: []string{gormlockScheme}, args: []string{"PART…"}, whose: "lockkey.Of(parts...), which gormlock.Key is",
		key: func(a []string) (lockkey.Key, error) {
			k := lockkey.Of(anys(a)...)
			return k, k.Err()
		},
		compute: func(_ lockkey.Key, a []string) string {
			sql, err := lockkey.SQL(anys(a)...)
			if err != nil {
				return ""
			}
			return sql
		},
	},
	{
		names: []string{"int64", "bigint"}, args: []string{"ID"}, whose: "lockkey.Int64, and every program that locks a number",
		key: func(a []string) (lockkey.Key, error) {
			id, err := integer(a[0], 64)
			return lockkey.Int64(id), err
		},
		compute: fixed,
	},
	{
		names: []string{"pair"}, args: []string{"HI", "LO"}, whose: "lockkey.Pair, and every program that locks two numbers",
		key: func(a []string) (lockkey.Key, error) {
			hi, err := integer(a[0], 32)
			if err != nil {
				return lockkey.Key{}, err
			}
			lo, err := integer(a[1], 32)
			return lockkey.Pair(int32(hi), int32(lo)), err
		},
		compute: fixed,
	},
}

// named adapts a function that makes a key from one name.
func named(of func(string) lockkey.Key) func([]string) (lockkey.Key, error) {
	return func(a []string) (lockkey.Key, error) {
		k := of(a[0])
		return k, k.Err()
	}
}

var rubySchemes = []scheme{
	{
		names: []string{"rails", "with-advisory-lock"}, args: []string{"NAME", "[PREFIX]"},
		whose: "the gem with_advisory_lock; PREFIX is its WITH_ADVISORY_LOCK_PREFIX",
		key: func(a []string) (lockkey.Key, error) {
			k := compat.WithAdvisoryLock(a[0], second(a, ""))
			return k, k.Err()
		},
		compute: func(k lockkey.Key, a []string) string {
			_, lo, _ := k.Pair()
			return fmt.Sprintf("(%s & 2147483647)::int, %d", crc32SQL(server.QuoteBytes(a[0])), lo)
		},
	},
	{
		names: []string{"rails-number"}, args: []string{"NUMBER", "[PREFIX]"}, whose: "the same gem, for a name given as a number",
		key: func(a []string) (lockkey.Key, error) {
			n, err := integer(a[0], 64)
			if err != nil {
				return lockkey.Key{}, err
			}
			return compat.WithAdvisoryLockNumber(n, second(a, "")), nil
		},
		compute: func(k lockkey.Key, a []string) string {
			_, lo, _ := k.Pair()
			return fmt.Sprintf("('%s'::bigint & 2147483647)::int, %d", a[0], lo)
		},
	},
	{
		names: []string{"good-job"}, args: []string{"KEY"}, whose: "GoodJob; the key of a job is good_jobs- and its id",
		key:     named(compat.GoodJob),
		compute: func(_ lockkey.Key, a []string) string { return bigEndianSQL("md5(" + server.QuoteBytes(a[0]) + ")") },
	},
	{
		names: []string{"good-job-sha256"}, args: []string{"KEY"}, whose: "GoodJob, configured with sha256",
		key:     named(compat.GoodJobSHA256),
		compute: func(_ lockkey.Key, a []string) string { return bigEndianSQL(hexSQL(sha256SQL(a[0]))) },
	},
	{
		names: []string{"good-job-uuid"}, args: []string{"KEY"}, whose: "GoodJob, configured with uuid_generate_v5", needs: "uuid-ossp",
		key: named(compat.GoodJobUUIDv5),
		compute: func(_ lockkey.Key, a []string) string {
			return bigEndianSQL("replace(uuid_generate_v5(uuid_ns_dns(), " + server.QuoteText(a[0]) + ")::text, '-', '')")
		},
	},
	{
		names: []string{"que"}, args: []string{"JOB-ID"}, whose: "the job queue Que",
		key: func(a []string) (lockkey.Key, error) {
			id, err := integer(a[0], 64)
			return compat.Que(id), err
		},
		compute: fixed,
	},
}

var migratorSchemes = []scheme{
	{
		names: []string{"rails-migrator"}, args: []string{"DATABASE"}, whose: "rails db:migrate", key: named(compat.RailsMigrator),
		compute: func(_ lockkey.Key, a []string) string { return "2053462845 * " + crc32SQL(server.QuoteBytes(a[0])) },
	},
	{
		names: []string{"sqlx"}, args: []string{"DATABASE"}, whose: "Rust's sqlx migrate", key: named(compat.Sqlx),
		compute: func(_ lockkey.Key, a []string) string { return "1026731422 * " + crc32SQL(server.QuoteBytes(a[0])) },
	},
	{
		names: []string{"golang-migrate"}, args: []string{"DATABASE", "[NAME…]"}, whose: "golang-migrate; NAMEs are the schema and the table of the migrations",
		key: func(a []string) (lockkey.Key, error) {
			k := compat.GolangMigrate(a[0], a[1:]...)
			return k, k.Err()
		},
		compute: func(_ lockkey.Key, a []string) string { return golangMigrateSQL(a[0], a[1:]) },
	},
	{
		names: []string{"flyway"}, args: []string{"SCHEMA", "[TABLE]"}, whose: "Flyway; TABLE is flyway_schema_history unless given",
		key: func(a []string) (lockkey.Key, error) {
			k := compat.Flyway(a[0], second(a, "flyway_schema_history"))
			return k, k.Err()
		},
		compute: func(_ lockkey.Key, a []string) string {
			return "77431708279161 + " + hashCodeSQL(quoteName(a[0])+"."+quoteName(second(a, "flyway_schema_history")))
		},
	},
}

var otherSchemes = []scheme{
	{
		names: []string{"java", "java-hashcode"}, args: []string{"NAME"}, whose: "Java: name.hashCode() & Long.MAX_VALUE", key: named(compat.JavaHashCode),
		compute: func(_ lockkey.Key, a []string) string {
			return hashCodeSQL(a[0]) + "::bigint & 9223372036854775807"
		},
	},
	{
		names: []string{"spring"}, args: []string{"KEY"}, whose: "Spring Integration's JdbcLockRegistry, whose lock is a row",
		row: func(a []string) (string, error) { return compat.SpringLockKey(a[0]) },
	},
	{
		names: []string{"pals"}, args: []string{"NAME", "[APP]"}, whose: "the Python package pals; APP is its app_name", needs: "pgcrypto",
		key: func(a []string) (lockkey.Key, error) {
			k := compat.Pals(second(a, ""), a[0])
			return k, k.Err()
		},
		compute: func(_ lockkey.Key, a []string) string {
			name := a[0]
			if app := second(a, ""); app != "" {
				name = app + "." + name
			}
			return littleEndianSQL(sha1SQL(name))
		},
	},
	{
		names: []string{"django-pglock"}, args: []string{"ID"}, whose: "the Python package django-pglock", key: named(compat.DjangoPglock),
		compute: func(_ lockkey.Key, a []string) string { return littleEndianSQL(sha256SQL(a[0])) },
	},
	{
		names: []string{"django-pglocks"}, args: []string{"ID"}, whose: "the Python package django-pglocks", key: named(compat.DjangoPglocks),
		compute: func(_ lockkey.Key, a []string) string { return signedSQL(crc32SQL(server.QuoteBytes(a[0]))) },
	},
	{
		names: []string{"distributed-lock", "dotnet"}, args: []string{"NAME"}, whose: "the .NET library DistributedLock", key: named(compat.DistributedLock),
		needs: "pgcrypto",
		compute: func(k lockkey.Key, a []string) string {
			if hashed, _ := compat.Pals("", a[0]).Int64(); ids(k) != strconv.FormatInt(hashed, 10) {
				return "" // packed, or written out
			}
			return littleEndianSQL(sha1SQL(a[0]))
		},
	},
}

// serverSchemes are hashes of the server. Another version of the server may compute them differently.
var serverSchemes = []scheme{
	{
		names: []string{"hashtext"}, args: []string{"TEXT"}, whose: "pg_advisory_lock(hashtext(text))", key: named(compat.HashText),
		compute: func(_ lockkey.Key, a []string) string { return "hashtext(" + server.QuoteText(a[0]) + ")::bigint" },
	},
	{
		names: []string{"hashtext-pair"}, args: []string{"SPACE", "TEXT"}, whose: "pg_advisory_lock(hashtext(space), hashtext(text))",
		key: func(a []string) (lockkey.Key, error) {
			k := compat.HashTextPair(a[0], a[1])
			return k, k.Err()
		},
		compute: func(_ lockkey.Key, a []string) string {
			return "hashtext(" + server.QuoteText(a[0]) + "), hashtext(" + server.QuoteText(a[1]) + ")"
		},
	},
	{
		names: []string{"hashtextextended"}, args: []string{"TEXT", "[SEED]"}, whose: "pg_advisory_lock(hashtextextended(text, seed))",
		key: func(a []string) (lockkey.Key, error) {
			seed, err := integer(second(a, "0"), 64)
			if err != nil {
				return lockkey.Key{}, err
			}
			k := compat.HashTextExtended(a[0], seed)
			return k, k.Err()
		},
		compute: func(_ lockkey.Key, a []string) string {
			return "hashtextextended(" + server.QuoteText(a[0]) + ", '" + second(a, "0") + "')"
		},
	},
}
