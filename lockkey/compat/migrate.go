package compat

import (
	"cmp"
	"hash/crc32"
	"strings"

	"github.com/gormlock/gormlock/lockkey"
)

// RailsMigrator is the bigint that Rails holds, as a session lock, while it
// migrates: 2053462845 × crc32(database), where database is what
// current_database() shows.
func RailsMigrator(database string) lockkey.Key {
	return bigint(2053462845*checksum(database), notDatabase(database), "rails-migrator", database)
}

// Sqlx is the bigint that Rust's sqlx holds, as a session lock, while it
// migrates: 0x3d32ad9e × crc32(database), where database is what
// current_database() shows.
func Sqlx(database string) lockkey.Key {
	return bigint(0x3d32ad9e*checksum(database), notDatabase(database), "sqlx", database)
}

// GolangMigrate is the bigint that golang-migrate holds, as a session lock,
// while it migrates: crc32 × 1486364155, wrapped at 32 bits and never negative,
// over the names and then the database, joined by NUL bytes. Its PostgreSQL
// drivers give two names, the schema and the table of the migrations.
func GolangMigrate(database string, names ...string) lockkey.Key {
	problem := cmp.Or(notDatabase(database), notText(names...), notUnicode(names...))
	joined := strings.Join(append(names[:len(names):len(names)], database), "\x00")
	id := uint32(checksum(joined)) * 1486364155
	return bigint(int64(id), problem, "golang-migrate", append([]string{database}, names...)...)
}

func checksum(text string) int64 {
	return int64(crc32.ChecksumIEEE([]byte(text)))
}
