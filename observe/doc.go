// Package observe says what happened to locks, to whoever wants to count, trace or
// log it. It imports the standard library only; without an observer nothing is spent.
//
// # Stability
//
// This package may still change before v1: names may move or go.
package observe
