package compat

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"

	"github.com/gormlock/gormlock/lockkey"
)

// Pals is the bigint that the Python package pals locks: the first 8 bytes of
// SHA-1("app.name"), little-endian. An empty app stands for app_name=None,
// where the name is hashed alone.
func Pals(app, name string) lockkey.Key {
	if app != "" {
		name = app + "." + name
	}
	sum := sha1.Sum([]byte(name))
	return bigint(int64(binary.LittleEndian.Uint64(sum[:])), notUnicode(name), "pals", name)
}

// DjangoPglock is the bigint that the Python package django-pglock locks for an
// id given as text: the first 8 bytes of SHA-256(id), little-endian. As a
// decorator its default id is "module.function". An id given as an integer is
// lockkey.Int64.
func DjangoPglock(id string) lockkey.Key {
	sum := sha256.Sum256([]byte(id))
	return bigint(int64(binary.LittleEndian.Uint64(sum[:])), notUnicode(id), "django-pglock", id)
}

// DjangoPglocks is the bigint that the Python package django-pglocks locks for
// an id given as text: crc32(id) as a signed 32-bit number, widened with its
// sign, so half of all keys are negative. An id given as an integer is
// lockkey.Int64, a tuple of two is lockkey.Pair.
func DjangoPglocks(id string) lockkey.Key {
	return bigint(int64(int32(crc32.ChecksumIEEE([]byte(id)))), notUnicode(id), "django-pglocks", id)
}
