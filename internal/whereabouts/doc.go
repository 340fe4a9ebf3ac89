// Package whereabouts knows where the structs of a transaction are by now. GORM copies children while it saves an association or deletes from
// one, and the caller moves structs within his slices. A rollback restores each struct where it is, not where it was.
package whereabouts
