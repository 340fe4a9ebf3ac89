// Package whereabouts knows where the structs of a transaction are now. GORM copies children while it saves an association or deletes from one, and
// the caller moves structs within slices. A rollback restores each struct where it is, not where it was.
package whereabouts
