package compat

import "github.com/gormlock/gormlock/lockkey"

// reserved are the bigints that tools have fixed in their source.
var reserved = map[int64]string{
	9628173550095224:    "jackc/tern",
	4097083626:          "pressly/goose DefaultLockID",
	72707369:            "Prisma migrate",
	3853314791062309107: "Kysely migrator",
	7241865325823964:    "node-pg-migrate",
	flywayBase:          "Flyway LOCK_MAGIC_NUM base",
}

// Reserved reports whether k is a key that a well-known tool has fixed in its
// source, and which tool. A program that takes such a key for a purpose of its
// own waits for that tool's migrations, and they for it. Keys that tools derive
// from a database name are not among them.
func Reserved(k lockkey.Key) (tool string, ok bool) {
	for _, one := range k.Keys() {
		if id, bigint := one.Int64(); bigint {
			if tool, ok = reserved[id]; ok {
				return tool, true
			}
		}
	}
	return "", false
}
