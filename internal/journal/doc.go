// Package journal keeps, for each open transaction, what must be put back in the application's structs when the
// transaction, or a savepoint in it, is rolled back. The [ConnPool] that stands in for the application's *sql.DB gives
// every transaction its journal, and lets one begin with its locks.
//
// A journal follows each text that the server executes (package sqltext), not what GORM meant by it. If it is
// certain what was rolled back, the steps since then are undone. If it is not certain, because a text failed halfway or only
// the server knows a name, the steps are lost: their structs count as not read, and their next write is an error. A
// transaction has no journal if gormlock does not see its end.
package journal
