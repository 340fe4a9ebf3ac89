// Package pgtest gives tests a real PostgreSQL.
//
// A package whose tests use it has
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// Each test binary has a database of its own: on the server that GORMLOCK_TEST_DSN
// names, else on a server that is started when the first test asks for it. Without
// either the tests fail; they are never skipped.
//
// Advisory locks belong to the database, not to a schema, so every test takes a key
// of its own from Key, which fails the test that leaves it locked. Tables belong to
// a schema, so a test that needs tables of its own passes the option Schema.
//
// The functions that take a testing.TB end the test when something is wrong, so they
// are called from the test's goroutine.
package pgtest
