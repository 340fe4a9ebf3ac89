// Package column is about one version or fence column of a model: the rules that its tag chose, its values, and how these
// are compared, moved on, read from a struct and written into one.
package column
