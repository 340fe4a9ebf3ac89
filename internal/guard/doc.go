// Package guard makes sure that a versioned row is written only by a caller that has read it, and a fenced row only by
// the latest holder of its lock. A write has three parts: a plan, made before the statement; the SQL that is built from
// it; and an outcome, which is what the server answered. Only the outcome changes the application's structs. What must
// hold for a row are guards: its version, its fence, its columns as they were.
//
// After a write that succeeded a struct has its row's version only if it is the row: it was at the row's version before and
// wrote its changes, or the row came back whole. Any other struct counts as not read, and its next write is refused.
package guard
