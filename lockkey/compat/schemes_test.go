package compat_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
)

// K1. The numbers are Ruby 3.1's prefix.to_i & 0x7fffffff.
func TestWithAdvisoryLock_prefixIsRubysToI(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]int32{
		"0d42": 42, "0D_7": 0, "0_8": 8, "0__8": 0, "_1": 0, "1_": 1, "1__0": 1, " \t\n\v\f\r7": 7, "+ 5": 0, "--5": 0,
		"-5": 2147483643, "+-5": 0, "-0d9": 2147483639, "99999999999999999999999999": 1677721599,
		"-99999999999999999999999999": 469762049, "2147483648": 0, "4294967301": 5, "0b11": 0, "0o7": 0, "017": 17,
		"\u00a07": 0, "٣": 0, "1e3": 1, "0d": 0, "0d-1": 0, "0": 0, "-": 0, "+": 0, "000_1": 1, "00__1": 0, "0d0_1": 1, "0d 5": 0,
		"- 5": 0, "  -1_0x": 2147483638, "1_000_": 1000, "\x00 7": 0, "0_": 0, "0_d7": 0, "+0d12": 12, "0d+5": 0, "0d__1": 0,
		"00d5": 0, "7\xff": 7, "-1": math.MaxInt32,
	} {
		if _, lo, ok := compat.WithAdvisoryLock("hello", prefix).Pair(); !ok || lo != want {
			t.Errorf("prefix %q: %d, want %d", prefix, lo, want)
		}
	}
}

func TestWithAdvisoryLock_wordPrefixIsolatesNothing(t *testing.T) {
	t.Parallel()
	staging, production := compat.WithAdvisoryLock("hello", "myapp_staging_"), compat.WithAdvisoryLock("hello", "myapp_production_")
	if staging != production || staging != compat.WithAdvisoryLock("hello", "") {
		t.Errorf("%v and %v are two locks", staging, production)
	}
	if compat.WithAdvisoryLock("12345", "") == compat.WithAdvisoryLockNumber(12345, "") {
		t.Error("a number and its digits are one lock")
	}
	wantPair(t, compat.WithAdvisoryLock("\xff\x00", ""), 0xd2fdef8d&math.MaxInt32, 0)
	wantPair(t, compat.WithAdvisoryLockNumber(math.MinInt64, "42"), 0, 42)
}

// K6. NUL is an ASCII character to .NET, and so is what its parser passes over.
func TestDistributedLock_formByName(t *testing.T) {
	t.Parallel()
	wantPair(t, compat.DistributedLock("\x00"), 0x00ffffff, -1)
	wantPair(t, compat.DistributedLock("\x00\x00"), 0x0001ffff, -1)
	wantPair(t, compat.DistributedLock("\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f"), -1, -2)
	wantPair(t, compat.DistributedLock("ABCDEF01,abcdef01"), -1412567295, -1412567295)
	wantInt64(t, compat.DistributedLock("ffffffffFFFFFFFE"), -2)
	wantInt64(t, compat.DistributedLock("8000000000000000"), math.MinInt64)
	wantPair(t, compat.DistributedLock("7\x00\x00\x00\x00\x00\x00\x00,0000002a"), 7, 42)
	for _, name := range []string{
		"0123456789",                               // ten characters
		"0000000g00000000",                         // not hexadecimal
		"+000000100000000",                         // a sign
		"0x00000100000000",                         // a prefix
		"1_00000000000000",                         // an underscore
		"       100000000",                         // spaces
		"0000000000000000,",                        // 17 characters, the comma elsewhere
		"00000000;00000000",                        // another separator
		"\x00\x00\x00\x00\x00\x00\x00\x0000000000", // no digit before the NULs
		"12345678é",
		"é",
	} {
		got, ok := compat.DistributedLock(name).Int64()
		if want, _ := compat.Pals("", name).Int64(); !ok || got != want { // the same hash
			t.Errorf("%q: %v is not hashed", name, compat.DistributedLock(name))
		}
	}
}

// K4. Java counts UTF-16 code units: 😀 is two, U+D83D and U+DE00.
func TestStringHashCode_countsUTF16(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int32{"": 0, "\x00a": 97, "\uFFFD": 65533, "😀": 31*0xd83d + 0xde00, "\xff": 65533} {
		if got := compat.StringHashCode(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// The LOCK_KEYs are OpenJDK 17's.
func TestSpringLockKey_parsesAsJavaDoes(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"1-1-1-1-1": "00000001-0001-0001-0001-000000000001",
		"123456789-12345-12345-12345-1234567890abc": "2c054f7a-d02f-3c6f-aede-b1b14426ceff", // too long
		"ABCDEF12-3456-7890-ABCD-EF1234567890":      "abcdef12-3456-7890-abcd-ef1234567890",
		"00000000-0000-0000-0000-000000000000":      "00000000-0000-0000-0000-000000000000",
		"+1-1-1-1-1":                                "00000001-0001-0001-0001-000000000001",
		"1-1-1-1":                                   "55998bab-939d-30e7-b4e7-6e04d168f1f0",
		"1-1-1-1-1-1":                               "66b6162d-4e6a-3449-922f-8737f19c50e1",
		"1--1-1-1":                                  "e537a5bc-37a5-3627-b56f-af04da925be7",
		"-1-1-1-1-1":                                "c70fe41e-64de-3b20-8243-43682253e078",
		"ffffffffffffffff-1-1-1-1":                  "eee94c46-c1ef-3574-8669-548050b74239", // beyond a long
		"7fffffffffffffff-1-1-1-1":                  "ffffffff-0001-0001-0001-000000000001",
		"1-1-1-1-123456789abcde":                    "00000001-0001-0001-0001-3456789abcde",
		"g-1-1-1-1":                                 "fae7fd61-cf8e-316d-a85b-d706e4bd7010",
		" 1-1-1-1-1":                                "d8bedbca-23be-39e7-898b-9f090166488b",
		"+-1-1-1-1":                                 "7d0046a3-36df-3031-aa89-8ea02b831b48",
		"1_0-1-1-1-1":                               "ca581519-dd80-3532-9515-f937b1c13ce1",
		"0x1-1-1-1-1":                               "2d13551f-de2d-37e6-aee9-dba8ea2bb070",
	} {
		if got, err := compat.SpringLockKey(key); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", key, got, err, want)
		}
	}
	if got, err := compat.SpringLockKey("\xff"); !errors.Is(err, lockkey.ErrInvalid) || got != "" {
		t.Errorf("invalid UTF-8: %s, %v", got, err)
	}
}

// A lock for input the program cannot have would exclude nobody.
func TestSchemes_impossibleInputIsAnError(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	for _, c := range []struct {
		want string
		k    lockkey.Key
	}{
		{"rails-migrator: the database name is empty", compat.RailsMigrator("")},
		{"rails-migrator: the database name is longer", compat.RailsMigrator(long)},
		{"sqlx: the database name is empty", compat.Sqlx("")},
		{"sqlx: no PostgreSQL text holds a NUL", compat.Sqlx("a\x00")},
		{"golang-migrate: the database name is empty", compat.GolangMigrate("", "public")},
		{"golang-migrate: no PostgreSQL text holds a NUL", compat.GolangMigrate("app", "a\x00b")},
		{"golang-migrate: the name is not valid UTF-8", compat.GolangMigrate("app", "a", "\xff")},
		{"flyway: the schema or the table is empty", compat.Flyway("", "flyway_schema_history")},
		{"flyway: the schema or the table is empty", compat.Flyway("public", "")},
		{"flyway: the name is not valid UTF-8", compat.Flyway("public", "\xff")},
		{"flyway: no PostgreSQL text holds a NUL", compat.Flyway("public", "a\x00")},
		{"java-hashcode: the name is not valid UTF-8", compat.JavaHashCode("\xed\xa0\x80")}, // a lone surrogate
		{"pals: the name is not valid UTF-8", compat.Pals("a", "\xff")},
		{"django-pglock: the name is not valid UTF-8", compat.DjangoPglock("\xff")},
		{"django-pglocks: the name is not valid UTF-8", compat.DjangoPglocks("\xff")},
		{"distributed-lock: the name is not valid UTF-8", compat.DistributedLock("\xff")},
		{"good-job: no PostgreSQL text holds a NUL", compat.GoodJob("a\x00")},
		{"good-job: no PostgreSQL text holds a NUL", compat.GoodJobSHA256("a\x00")},
		{"good-job: no PostgreSQL text holds a NUL", compat.GoodJobUUIDv5("a\x00")},
		{"hashtext: no PostgreSQL text holds a NUL", compat.HashText("\x00")},
		{"hashtext: no PostgreSQL text holds a NUL", compat.HashTextPair("a", "\x00")},
		{"hashtext: no PostgreSQL text holds a NUL", compat.HashTextPair("\x00", "a")},
		{"hashtextextended: no PostgreSQL text holds a NUL", compat.HashTextExtended("\x00", 1)},
	} {
		if err := c.k.Err(); !errors.Is(err, lockkey.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Err is %v, want %q", err, c.want)
		}
	}
}

func TestSchemes_keysAreNamedAfterTheScheme(t *testing.T) {
	t.Parallel()
	for want, k := range map[string]lockkey.Key{
		"rails-migrator/app_test":                       compat.RailsMigrator("app_test"),
		"sqlx/app_test":                                 compat.Sqlx("app_test"),
		"golang-migrate/app_test/public/migrations":     compat.GolangMigrate("app_test", "public", "migrations"),
		"flyway/public/flyway_schema_history":           compat.Flyway("public", "flyway_schema_history"),
		"java-hashcode/orders:42":                       compat.JavaHashCode("orders:42"),
		"with-advisory-lock/orders:42":                  compat.WithAdvisoryLock("orders:42", ""),
		"with-advisory-lock/42/nightly":                 compat.WithAdvisoryLock("nightly", "42abc"),
		"with-advisory-lock/7":                          compat.WithAdvisoryLockNumber(7, ""),
		`good-job/"two\nlines"`:                         compat.GoodJob("two\nlines"),
		"que/-7":                                        compat.Que(-7),
		"pals/myapp.nightly":                            compat.Pals("myapp", "nightly"),
		"django-pglock/app.tasks.sync":                  compat.DjangoPglock("app.tasks.sync"),
		"django-pglocks/sync":                           compat.DjangoPglocks("sync"),
		"distributed-lock/base38":                       compat.DistributedLock("base38"),
		"distributed-lock/00000003,ffffffff":            compat.DistributedLock("00000003,ffffffff"),
		"hashtext/a":                                    compat.HashText("a"),
		"hashtext/orders/42":                            compat.HashTextPair("orders", "42"),
		"hashtextextended/a":                            compat.HashTextExtended("a", 0),
		"hashtextextended/a/-1":                         compat.HashTextExtended("a", -1),
		`distributed-lock/"a longer name than fits it"`: compat.DistributedLock("a longer name than fits it"),
	} {
		if k.String() != want {
			t.Errorf("String is %s, want %s", k, want)
		}
	}
	wantInt64(t, compat.Que(math.MinInt64), math.MinInt64)
}

func TestGolangMigrate_leavesItsArgumentsAlone(t *testing.T) {
	t.Parallel()
	names := []string{"schema_name_1", "schema_name_2", "mine"}
	compat.GolangMigrate("database_name", names[:2]...)
	if !slices.Equal(names, []string{"schema_name_1", "schema_name_2", "mine"}) {
		t.Errorf("the caller's slice became %q", names)
	}
}

// K9: the halves of a reserved bigint are another lock.
func TestReserved_onlyTheBigint(t *testing.T) {
	t.Parallel()
	for _, id := range []int64{9628173550095224, 72707369} {
		if _, ok := compat.Reserved(lockkey.Int64(id).Named("mine")); !ok {
			t.Errorf("%d is not reserved under a name", id)
		}
		if tool, ok := compat.Reserved(lockkey.Pair(int32(id>>32), int32(id))); ok {
			t.Errorf("a pair is reserved by %s", tool)
		}
	}
	for _, k := range []lockkey.Key{{}, lockkey.Of("invoice", 42), lockkey.Int64(0), compat.RailsMigrator("postgres"), lockkey.Invalid("72707369")} {
		if tool, ok := compat.Reserved(k); ok {
			t.Errorf("%v is reserved by %s", k, tool)
		}
	}
}
