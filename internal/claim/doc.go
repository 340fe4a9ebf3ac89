// Package claim hands out rows of a table of work to many workers, each to one.
package claim
