// Package guard makes sure that a versioned row is written only by a caller that has read it, and a fenced row only by the latest holder of its
// lock. A write has three parts: a plan, which is made before the statement; the SQL, which is built from the plan; and an outcome, which is what
// the server answered. Only the outcome changes the application's structs. Guards are conditions on a row: its version, its fence, its unchanged
// columns.
//
// After a successful write, a struct has its row's version only if it equals the row: it was at the row's version before and wrote its changes, or
// the whole row was returned. Any other struct counts as not read, and its next write is refused.
package guard
