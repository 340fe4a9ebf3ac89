package compat_test

import (
	"fmt"

	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
)

// The lock of a Rails application that runs
// Order.with_advisory_lock("orders:42") { ... } with the variable
// WITH_ADVISORY_LOCK_PREFIX set.
func ExampleWithAdvisoryLock() {
	k := compat.WithAdvisoryLock("orders:42", "myapp_staging_")
	hi, lo, _ := k.Pair()
	fmt.Println(k, hi, lo)
	// Output: with-advisory-lock/orders:42 218055877 0
}

// The keys that other programs take for these names.
func Example() {
	for _, k := range []lockkey.Key{
		compat.Flyway("public", "flyway_schema_history"),
		compat.GolangMigrate("app", "public", "schema_migrations"),
		compat.RailsMigrator("app"),
		compat.Sqlx("app"),
		compat.GoodJob("good_jobs-42"),
		compat.Que(42),
		compat.DjangoPglock("reports.nightly"),
		compat.JavaHashCode("orders:42"),
		compat.HashText("nightly"),
	} {
		id, _ := k.Int64()
		fmt.Println(k, id)
	}
	// Output:
	// flyway/public/flyway_schema_history 77433833903597
	// golang-migrate/app/public/schema_migrations 1787120056
	// rails-migrator/app 6939591962871035475
	// sqlx/app 3469795979745788610
	// good-job/good_jobs-42 -3383001748316879665
	// que/42 42
	// django-pglock/reports.nightly 8676153343498644922
	// java-hashcode/orders:42 9223372036464072499
	// hashtext/nightly 2091003772
}

// Before a program uses a fixed number: does a well-known tool lock it?
func ExampleReserved() {
	tool, taken := compat.Reserved(lockkey.Int64(72707369))
	fmt.Println(tool, taken)
	// Output: Prisma migrate true
}
