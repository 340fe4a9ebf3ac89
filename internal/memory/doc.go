// Package memory keeps the structs of a statement as they were before it and as it left them, and restores them.
package memory
