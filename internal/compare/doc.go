// Package compare asks the server whether a column still holds what a struct says.
package compare
