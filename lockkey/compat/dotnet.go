package compat

import (
	"crypto/sha1"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/gormlock/gormlock/lockkey"
)

// DistributedLock is the key that the .NET library DistributedLock makes of a
// name, in one of three ways and two key spaces:
//
//   - Up to 9 ASCII characters, NUL included, are packed into a pair, 7 bits
//     each, then a 0 bit, then 1 bits.
//   - "XXXXXXXX,XXXXXXXX" in hexadecimal is that pair, and 16 hexadecimal digits
//     are that bigint. As .NET parses them, NULs at the end of a half count as
//     nothing.
//   - Any other name is the first 8 bytes of its SHA-1, little-endian, as a
//     bigint. The .NET side accepts such a name only with allowHashing.
func DistributedLock(name string) lockkey.Key {
	const scheme = "distributed-lock"
	if hi, lo, ok := packASCII(name); ok {
		return lockkey.Pair(hi, lo).Named(scheme, name)
	}
	if len(name) == 17 && name[8] == ',' {
		if hi, lo, ok := hexHalves(name[:8], name[9:]); ok {
			return lockkey.Pair(hi, lo).Named(scheme, name)
		}
	}
	if len(name) == 16 {
		if hi, lo, ok := hexHalves(name[:8], name[8:]); ok {
			return lockkey.Int64(int64(hi)<<32|int64(uint32(lo))).Named(scheme, name)
		}
	}
	sum := sha1.Sum([]byte(name))
	return bigint(int64(binary.LittleEndian.Uint64(sum[:])), notUnicode(name), scheme, name)
}

func packASCII(name string) (hi, lo int32, ok bool) {
	const characters, bits, ones = 9, 7, 1<<7 - 1
	if len(name) > characters {
		return 0, 0, false
	}
	var packed uint64
	for i := range len(name) {
		if name[i] > ones {
			return 0, 0, false
		}
		packed = packed<<bits | uint64(name[i])
	}
	packed <<= 1
	for range characters - len(name) {
		packed = packed<<bits | ones
	}
	return int32(packed >> 32), int32(packed), true
}

func hexHalves(left, right string) (hi, lo int32, ok bool) {
	a, errA := strconv.ParseUint(strings.TrimRight(left, "\x00"), 16, 32)
	b, errB := strconv.ParseUint(strings.TrimRight(right, "\x00"), 16, 32)
	return int32(a), int32(b), errA == nil && errB == nil
}
