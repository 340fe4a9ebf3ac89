// Package compare writes conditions that let the server compare a column with a struct.
package compare
