package lockkey_test

import (
	"fmt"

	"github.com/gormlock/gormlock/lockkey"
)

func ExampleOf() {
	k := lockkey.Of("invoice", 42)
	id, _ := k.Int64()
	fmt.Println(k, id)
	fmt.Println(lockkey.Of("invoice", 4.2).Err())
	// Output:
	// invoice/42 1840925882773462882
	// gormlock: invalid lock key: part 2 is a float64, not a string, integer, []byte or fmt.Stringer
}

func ExampleSQL() {
	sql, _ := lockkey.SQL("invoice", 42)
	fmt.Println("SELECT pg_advisory_xact_lock(" + sql + ")")
	// Output:
	// SELECT pg_advisory_xact_lock(('x' || encode(substr(sha256(convert_to('7:invoice2:42', 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint)
}

// The first step of renaming a lock in a fleet: it is taken under both names.
func ExampleRenamed() {
	k := lockkey.Renamed(lockkey.Of("billing", "report"), lockkey.Int64(7))
	fmt.Println(k)
	for _, one := range k.Keys() {
		fmt.Println(one)
	}
	// Output:
	// billing/report, formerly int64(7)
	// int64(7)
	// billing/report
}

// Ids that are numbers already, in PostgreSQL's two key spaces, with names for people.
func ExamplePair() {
	number := lockkey.Int64(7).Named("reports")
	pair := lockkey.Pair(0, 7)
	fmt.Println(number, pair)
	fmt.Println("one lock:", lockkey.Compare(number, pair) == 0)
	fmt.Println("one lock:", lockkey.Compare(number, lockkey.Int64(7)) == 0)
	// Output:
	// reports pair(0,7)
	// one lock: false
	// one lock: true
}
