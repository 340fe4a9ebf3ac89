package compat

import (
	"cmp"
	"crypto/md5"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/gormlock/gormlock/lockkey"
)

// JavaHashCode is the bigint of Java code that locks
// name.hashCode() & Long.MAX_VALUE. A negative hash is widened to 64 bits
// before the mask, so "orders:42" is 9223372036464072499 and not 31 bits. For
// code that uses the hash in another way see [StringHashCode].
func JavaHashCode(name string) lockkey.Key {
	return bigint(int64(StringHashCode(name))&math.MaxInt64, notUnicode(name), "java-hashcode", name)
}

// StringHashCode is Java's String.hashCode, computed over UTF-16 code units. It
// serves programs that pass it on as it is, lockkey.Int64(int64(h)), or as half
// of a pair. Text that is not valid UTF-8 is no Java string; its invalid bytes
// count as U+FFFD.
func StringHashCode(text string) int32 {
	var hash int32
	for _, unit := range utf16.Encode([]rune(text)) {
		hash = 31*hash + int32(unit)
	}
	return hash
}

// flywayBase is Flyway's LOCK_MAGIC_NUM.
const flywayBase = 77431708279161

// Flyway is the bigint that Flyway locks while it migrates: 77431708279161 plus
// the signed hashCode of "schema"."table", quotes included and doubled inside,
// where table is the history table, by default flyway_schema_history. Flyway
// takes it in a transaction, or for the session when
// postgresql.transactional.lock is false.
func Flyway(schema, table string) lockkey.Key {
	problem := cmp.Or(notText(schema, table), notUnicode(schema, table))
	if schema == "" || table == "" {
		problem = "the schema or the table is empty"
	}
	id := flywayBase + int64(StringHashCode(quoteIdentifier(schema)+"."+quoteIdentifier(table)))
	return bigint(id, problem, "flyway", schema, table)
}

func quoteIdentifier(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// SpringLockKey is the LOCK_KEY by which Spring Integration's JdbcLockRegistry
// finds its row in INT_LOCK; it is a row's key, not an advisory lock. Text that
// Java's UUID.fromString accepts becomes that UUID in its canonical form, and
// fromString is lenient: "1-1-1-1-1" is a UUID, and digits too many for their
// field are cut from the left. Any other text becomes the UUID of its MD5. Text
// that is not valid UTF-8 is an error that wraps lockkey.ErrInvalid. Digits
// outside ASCII, which Java would read as digits, count as text.
func SpringLockKey(key string) (string, error) {
	if problem := notUnicode(key); problem != "" {
		return "", lockkey.Invalid("spring lock key: " + problem).Err()
	}
	if id, ok := javaUUID(key); ok {
		return id, nil
	}
	sum := md5.Sum([]byte(key))
	sum[6] = sum[6]&0x0f | 0x30 // the version
	sum[8] = sum[8]&0x3f | 0x80 // the variant
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:]), nil
}

// javaUUID is UUID.fromString: five hexadecimal numbers of any length, 36
// characters in all at most.
func javaUUID(text string) (string, bool) {
	fields := strings.Split(text, "-")
	if len(fields) != 5 || len(text) > 36 {
		return "", false
	}
	for i, width := range []int{8, 4, 4, 4, 12} {
		n, err := strconv.ParseInt(fields[i], 16, 64)
		if err != nil {
			return "", false
		}
		fields[i] = fmt.Sprintf("%0*x", width, n&(1<<(4*width)-1))
	}
	return strings.Join(fields, "-"), true
}
