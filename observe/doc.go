// Package observe reports what happens to locks, so that you can count, trace or log
// it. It imports only the standard library. Without an observer it costs nothing.
//
// # Stability
//
// This package may still change before v1: names may move or go.
package observe
