package compat

import (
	"encoding/binary"
	"math/bits"
	"strconv"

	"github.com/gormlock/gormlock/lockkey"
)

// HashText is the bigint of pg_advisory_lock(hashtext(text)): the 32-bit hash
// widened with its sign, so half of all keys are negative.
//
// It is computed as PostgreSQL 15 does on a little-endian machine under a
// deterministic collation. PostgreSQL promises the result for no version and no
// machine: where a server is at hand, let it compute the hash and pass that to
// lockkey.Int64. The hash is over the bytes in the server's encoding, so for a
// server that is not UTF-8 the text must be in that encoding.
func HashText(text string) lockkey.Key {
	return bigint(int64(hashText(text)), notText(text), "hashtext", text)
}

// HashTextPair is the pair of pg_advisory_lock(hashtext(space), hashtext(text)),
// with the limits of [HashText].
func HashTextPair(space, text string) lockkey.Key {
	if problem := notText(space, text); problem != "" {
		return lockkey.Invalid("hashtext: " + problem)
	}
	return lockkey.Pair(hashText(space), hashText(text)).Named("hashtext", space, text)
}

// HashTextExtended is the bigint of
// pg_advisory_lock(hashtextextended(text, seed)), with the limits of [HashText].
func HashTextExtended(text string, seed int64) lockkey.Key {
	b, c := hashBytes(text, uint64(seed))
	name := []string{text}
	if seed != 0 {
		name = append(name, strconv.FormatInt(seed, 10))
	}
	return bigint(int64(b)<<32|int64(c), notText(text), "hashtextextended", name...)
}

func hashText(text string) int32 {
	_, c := hashBytes(text, 0)
	return int32(c)
}

// hashBytes is PostgreSQL's hash_bytes_extended, Bob Jenkins' lookup3 with
// PostgreSQL's own mixing constants, on a little-endian machine. A seed of 0
// leaves hash_bytes, whose result is the second word.
func hashBytes(text string, seed uint64) (uint32, uint32) {
	start := 0x9e3779b9 + uint32(len(text)) + 3923095
	a, b, c := start, start, start
	if seed != 0 {
		a, b, c = mix(a+uint32(seed>>32), b+uint32(seed), c)
	}
	rest := []byte(text)
	for ; len(rest) >= 12; rest = rest[12:] {
		a, b, c = mix(a+word(rest), b+word(rest[4:]), c+word(rest[8:]))
	}
	var tail [12]byte
	copy(tail[:8], rest)
	if len(rest) > 8 {
		copy(tail[9:], rest[8:]) // the low byte of the third word belongs to the length
	}
	return final(a+word(tail[:]), b+word(tail[4:]), c+word(tail[8:]))
}

func word(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

func mix(a, b, c uint32) (uint32, uint32, uint32) {
	for i, r := range [6]int{4, 6, 8, 16, 19, 4} {
		switch i % 3 {
		case 0:
			a = (a - c) ^ bits.RotateLeft32(c, r)
			c += b
		case 1:
			b = (b - a) ^ bits.RotateLeft32(a, r)
			a += c
		case 2:
			c = (c - b) ^ bits.RotateLeft32(b, r)
			b += a
		}
	}
	return a, b, c
}

func final(a, b, c uint32) (uint32, uint32) {
	c = (c ^ b) - bits.RotateLeft32(b, 14)
	a = (a ^ c) - bits.RotateLeft32(c, 11)
	b = (b ^ a) - bits.RotateLeft32(a, 25)
	c = (c ^ b) - bits.RotateLeft32(b, 16)
	a = (a ^ c) - bits.RotateLeft32(c, 4)
	b = (b ^ a) - bits.RotateLeft32(a, 14)
	c = (c ^ b) - bits.RotateLeft32(b, 24)
	return b, c
}
