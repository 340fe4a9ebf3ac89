// Package column is one version or fence column of a model: the rules its tag chose, the values it holds, and how they
// are compared, counted on, read from a struct and written into one.
package column
