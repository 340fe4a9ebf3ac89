package compat

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/gormlock/gormlock/lockkey"
)

// WithAdvisoryLock is the pair that the Ruby gem with_advisory_lock locks for a
// name given as a string or symbol: crc32(name) & 0x7fffffff, and what Ruby's
// String#to_i makes of envPrefix, the value of WITH_ADVISORY_LOCK_PREFIX, &
// 0x7fffffff.
//
// A prefix counts by the number it starts with, so "myapp_staging_" is 0, the
// same as no prefix, and isolates nothing. "42" and "42abc" are 42, "1_000" is
// 1000, "0x10" is 0, "-1" is 2147483647. Names with the same crc32 share a
// lock; the name may hold any bytes. For a name given as a number see
// [WithAdvisoryLockNumber].
func WithAdvisoryLock(name, envPrefix string) lockkey.Key {
	return withAdvisoryLock(crc32.ChecksumIEEE([]byte(name)), name, envPrefix)
}

// WithAdvisoryLockNumber is the pair that the Ruby gem with_advisory_lock locks
// for a name given as a number: number & 0x7fffffff, and the prefix as in
// [WithAdvisoryLock]. It is not the lock of the same digits given as a string.
// Ruby cuts a float towards zero first. A number beyond an int64 counts by its
// low 31 bits.
func WithAdvisoryLockNumber(number int64, envPrefix string) lockkey.Key {
	return withAdvisoryLock(uint32(number), strconv.FormatInt(number, 10), envPrefix)
}

func withAdvisoryLock(hash uint32, name, envPrefix string) lockkey.Key {
	const mask = 0x7fffffff
	parts := []string{"with-advisory-lock", name}
	prefix := int32(rubyInt(envPrefix) & mask)
	if prefix != 0 {
		parts = []string{"with-advisory-lock", strconv.Itoa(int(prefix)), name}
	}
	return lockkey.Pair(int32(hash&mask), prefix).Named(parts...)
}

// rubyInt is the low 32 bits of Ruby's String#to_i: leading white space, a
// sign, the prefix 0d, and digits with single underscores between them. It
// stops at the first other character.
func rubyInt(text string) uint32 {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	text, negative := strings.CutPrefix(text, "-")
	if !negative {
		text = strings.TrimPrefix(text, "+")
	}
	if strings.HasPrefix(text, "0d") || strings.HasPrefix(text, "0D") {
		text = text[2:]
	}
	if negative {
		return -leadingDigits(text)
	}
	return leadingDigits(text)
}

func leadingDigits(text string) uint32 {
	var n uint32
	afterDigit := false
	for _, c := range []byte(text) {
		switch {
		case '0' <= c && c <= '9':
			n, afterDigit = n*10+uint32(c-'0'), true
		case c == '_' && afterDigit:
			afterDigit = false
		default:
			return n
		}
	}
	return n
}

// GoodJob is the bigint that the Ruby job queue GoodJob locks: the first 8
// bytes of MD5(key), big-endian. The key of a job is "good_jobs-" and its id; a
// concurrency key counts as it is. A queue configured with another hash
// function needs [GoodJobSHA256], [GoodJobUUIDv5] or, for hashtext, [HashText].
func GoodJob(key string) lockkey.Key {
	sum := md5.Sum([]byte(key))
	return goodJob(sum[:], key)
}

// GoodJobSHA256 is [GoodJob] for a queue configured with the hash function
// sha256.
func GoodJobSHA256(key string) lockkey.Key {
	sum := sha256.Sum256([]byte(key))
	return goodJob(sum[:], key)
}

// GoodJobUUIDv5 is [GoodJob] for a queue configured with uuid_generate_v5 in
// the DNS namespace.
func GoodJobUUIDv5(key string) lockkey.Key {
	const dns = "\x6b\xa7\xb8\x10\x9d\xad\x11\xd1\x80\xb4\x00\xc0\x4f\xd4\x30\xc8"
	sum := sha1.Sum([]byte(dns + key))
	sum[6] = sum[6]&0x0f | 0x50 // the version
	return goodJob(sum[:], key)
}

func goodJob(sum []byte, key string) lockkey.Key {
	return bigint(int64(binary.BigEndian.Uint64(sum)), notText(key), "good-job", key)
}

// Que is the bigint that the Ruby job queue Que locks for a job: its id.
func Que(jobID int64) lockkey.Key {
	return bigint(jobID, "", "que", strconv.FormatInt(jobID, 10))
}
