// Package aggregate moves the version of a root when a part of it is written: a row that belongs to it by a field with the tag
// `gormlock:"root"`.
package aggregate
