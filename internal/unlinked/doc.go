// Package unlinked knows which structs have lost what they belong to, or their only child, by Association(…).Delete, Replace or Clear.
//
// After its statement, Association(…).Delete empties the struct that the owner points to, in place, and of a belongs-to the foreign key of the
// owner as well. Clear of a has-one leaves an empty struct there. No statement shows the owner, only its key. So no rollback can restore it. The
// next save of the owner would store an empty row, or NULL where the row has still been linked since a rollback. It is refused, once for each
// struct that was emptied.
package unlinked
