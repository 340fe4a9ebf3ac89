// Package guard lets a versioned or fenced row be written only by who has read it, and only by the latest holder of its
// lock. A write is a plan, made before the statement; the SQL that is built of it; and an outcome, what the server
// answered, from which alone the application's structs are changed. What must hold for a row are guards: its version, its
// fence, its columns as they were.
//
// After a write that succeeded a struct has its row's version only if it is the row: it was at the row's version before and
// wrote its changes, or the row came back whole. Any other struct counts as not read, and its next write is refused.
package guard
