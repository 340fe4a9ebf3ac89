// Package merge saves a struct whose row others may have changed. It decides column by column which side wins.
package merge
