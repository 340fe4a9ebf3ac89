// Package fault holds the errors of the library: its sentinels, the facts of its error types, and the code that adds an error to a GORM statement
// so that errors.Is finds it to the end.
package fault
