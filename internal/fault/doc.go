// Package fault holds the errors of the library: its sentinels, the facts that its error types are made of, and the way
// in which an error gets into a GORM statement so that errors.Is finds it to the end.
package fault
