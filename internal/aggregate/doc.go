// Package aggregate moves the version of a root when a part of it is written. A part is a row that belongs to the root by a
// field with the tag `gormlock:"root"`.
package aggregate
