// Package claim hands out rows of a table to many workers, each row to one of
// them.
package claim
