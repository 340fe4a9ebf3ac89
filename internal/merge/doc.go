// Package merge saves a struct of which others may have changed the row: what is here and there is decided column by column.
package merge
